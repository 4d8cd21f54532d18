// The answer card: sentence, folded prompt, the text as tokens under a cursor, legend, what went wrong.

import { Chips } from "./chips.js";
import { box, button, make, region, setText } from "./dom.js";
import { Headline } from "./headline.js";
import { spoken } from "./marks.js";
import { percent } from "./numbers.js";
import { showNotes } from "./notes.js";
import { PromptFold } from "./prompt_fold.js";
import { shade, surprisal } from "./run.js";

const CHIPS_A_FRAME = [1000, 4000];
const LEVELS = [0, 1, 2, 3, 4];

export class Answer {
  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.headline = new Headline(scene);
    this.fold = new PromptFold(scene);
    this.chips = new Chips(make("div", "ft-answer"));
    this.chips.node.setAttribute("role", "group");
    this.chips.node.setAttribute("aria-label", words.say("answer.name"));
    this.error = make("p", "ft-error");
    this.error.setAttribute("role", "alert");
    this.notes = make("div", "ft-notes");
    this.node = region(words.say("region.tokens"), "ft-card-answer");
    this.node.append(
      this.headline.node, this.fold.node, this.chips.node, this.error, this.notes, this.#legend(),
    );
    scene.listenToTokens(this.chips.node);
    this.reset();
  }

  reset() {
    this.chips.clear();
    this.fold.reset();
    this.painted = 0;
    this.ended = false;
    this.current = null;
    this.held = [];
  }

  /** Paint what is new; returns how many steps are in the page by now. */
  paint(view) {
    const { run, lane } = view;
    this.headline.paint(view);
    this.fold.paint(view);
    if (lane) this.#append(lane, run);
    if (lane?.done && this.painted === lane.steps.length && !this.ended) this.#end(lane);
    this.#sayWhatFailed(view);
    this.#sayNotes(view);
    this.#cursor(view);
    return this.painted;
  }

  chipOf(step) {
    return this.chips.items[step]?.chip ?? null;
  }

  #append(lane, run) {
    const [few, many] = CHIPS_A_FRAME; // each frame lays out the whole text: the longer it is, the more at once
    const upTo = Math.min(lane.steps.length, this.painted + Math.max(few, Math.min(many, this.painted)));
    for (; this.painted < upTo; this.painted += 1) {
      const step = lane.steps[this.painted];
      this.chips.push({
        token: step.token, text: step.text, level: shade(surprisal(step)), name: this.#name(step, run),
      });
    }
    this.#hold(lane.done ? 0 : lane.steps[upTo - 1]?.held_characters ?? 0);
  }

  #name(step, run) {
    return this.scene.words.say("answer.token", {
      text: spoken(step.token), p: percent(step.processed_probability, run.figures),
    });
  }

  /** Mark the last tokens, `characters` long, that may yet turn out to begin a stop string. */
  #hold(characters) {
    const items = [];
    for (let i = this.painted - 1, left = characters; left > 0 && i >= 0; i -= 1) {
      items.push(this.chips.items[i]);
      left -= this.chips.items[i].text.length;
    }
    for (const item of this.held) if (!items.includes(item)) item.chip.classList.remove("ft-held");
    for (const item of items) item.chip.classList.add("ft-held");
    this.held = items;
  }

  #end(lane) {
    this.ended = true;
    if (lane.finished?.tail) this.chips.addTail(lane.finished.tail);
    const withheld = lane.finished?.withheld_steps ?? 0;
    if (withheld) this.#withhold(lane, withheld);
    if (lane.reason === "stop_token") this.chips.explainEnd(this.scene.words.say("answer.end"));
  }

  /** Take out of the text what a stop string took away; its steps stay, marked. */
  #withhold(lane, withheld) {
    const from = lane.steps.length - withheld;
    let room = lane.finished.text.length - this.#length(lane, from);
    for (let i = from; i < lane.steps.length; i += 1) {
      const { text } = lane.steps[i];
      const shown = text.slice(0, Math.max(0, room));
      this.chips.withhold(this.chips.items[i], shown, text.slice(shown.length));
      room -= shown.length;
      const { chip } = this.chips.items[i];
      chip.setAttribute("aria-label", `${chip.getAttribute("aria-label")}, ${this.scene.words.say("answer.withheld")}`);
    }
  }

  #length(lane, upTo) {
    return lane.steps.slice(0, upTo).reduce((sum, step) => sum + step.text.length, 0);
  }

  #sayWhatFailed({ run, lane, error }) {
    const message = error || lane?.failed?.message || run.failed?.message || "";
    setText(this.error, message);
    this.error.hidden = !message;
  }

  #sayNotes({ run, note }) {
    showNotes(this.notes, this.scene.words, run, note);
  }

  #cursor({ cursor }) {
    const chip = this.chipOf(cursor);
    if (chip === this.current) return;
    this.current?.removeAttribute("aria-current");
    this.current?.setAttribute("tabindex", "-1");
    chip?.setAttribute("aria-current", "true");
    chip?.setAttribute("tabindex", "0");
    this.current = chip;
    this.#reveal(chip);
  }

  /** A long answer scrolls inside its card; the page itself stays where it is. */
  #reveal(chip) {
    const box = this.chips.node;
    if (!chip || box.scrollHeight <= box.clientHeight) return;
    const [line] = chip.getClientRects();
    const frame = box.getBoundingClientRect();
    if (!line) return;
    if (line.bottom > frame.bottom) box.scrollTop += line.bottom - frame.bottom + line.height;
    else if (line.top < frame.top) box.scrollTop -= frame.top - line.top + line.height;
  }

  #legend() {
    const { words, glossary } = this.scene;
    const title = make("span");
    title.append(glossary.term("surprisal", words.say("legend.title")));
    const keys = LEVELS.map((level) => {
      const key = make("span", "ft-key");
      key.append(make("i", `ft-swatch ft-s${level}`), words.say(`legend.level_${level}`));
      return key;
    });
    const ids = button("ft-toggle", words.say("answer.ids"), () => {
      const on = this.chips.node.classList.toggle("ft-show-ids");
      ids.setAttribute("aria-pressed", String(on));
    });
    ids.setAttribute("aria-pressed", "false");
    ids.title = words.say("answer.ids_title");
    return box("ft-legend", box("ft-keys", title, ...keys), ids);
  }
}
