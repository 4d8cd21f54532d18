// The prompt as the model read it, folded behind a count of what is yours and what the template added.

import { Chips } from "./chips.js";
import { box, button, make, setText } from "./dom.js";
import { visible } from "./marks.js";
import { count } from "./numbers.js";
import { promptSurprisal } from "./columns.js";
import { readToken, shade } from "./run.js";
import { Sentence } from "./words.js";

const SHOWN_LIMIT = 4000;

export class PromptFold {
  constructor(scene) {
    this.scene = scene;
    this.open = false;
    this.label = new Sentence(make("span"), scene.words, scene.glossary.term);
    this.toggle = button("ft-link", "", () => this.#toggle());
    this.chips = new Chips(make("div", "ft-prompt"));
    this.chips.node.hidden = true;
    this.chips.node.addEventListener("click", (event) => {
      const chip = event.target.closest?.(".ft-token[data-i]");
      if (chip && !String(window.getSelection())) scene.read(Number(chip.dataset.i));
    });
    this.warning = make("p", "ft-quiet");
    this.warning.hidden = true;
    this.node = box("ft-fold", box("ft-fold-line", this.label.node, this.toggle), this.chips.node, this.warning);
    this.reset();
  }

  reset() {
    this.painted = null;
    this.filled = false;
    this.read = null;
    this.current = null;
    this.chips.node.classList.remove("ft-read");
    this.chips.clear();
    this.node.hidden = true;
  }

  paint({ run, reading }) {
    this.#begin(run);
    if (run.reading !== this.read && this.filled) this.#shade(run.reading);
    this.#point(reading);
  }

  #begin(run) {
    if (!run.started || this.painted === run.started) return;
    this.reset();
    this.painted = run.started;
    this.node.hidden = false;
    this.#summarize(run.started);
    this.#warn(run.started);
    this.#show();
  }

  /** Colour each token by its surprisal, as the answer's. */
  #shade(reading) {
    this.read = reading;
    this.chips.node.classList.toggle("ft-read", reading !== null);
    this.chips.items.forEach((item, i) => {
      const read = reading?.[i];
      if (read && read.rank !== null) item.chip.classList.replace("ft-s0", `ft-s${shade(promptSurprisal(read))}`);
    });
  }

  /** The outline of the cursor, where it stands in the prompt. */
  #point(reading) {
    const chip = this.chips.items[reading ?? -1]?.chip ?? null;
    if (chip === this.current) return;
    this.current?.removeAttribute("aria-current");
    chip?.setAttribute("aria-current", "true");
    this.current = chip;
  }

  #summarize({ prompt, own, request }) {
    const mine = own?.length ? own.filter(Boolean).length : prompt.length;
    const added = prompt.length - mine;
    const yours = this.scene.words.many("tokens", mine, count(mine));
    const key = request?.chat ? (added ? "chat" : "chat_plain") : added ? "raw_added" : "raw";
    this.label.show(`prompt.${key}`, { yours, added: count(added) });
  }

  #warn({ prompt, request }) {
    const last = prompt.length ? readToken(prompt.at(-1)) : null;
    const alone = Boolean(last) && !request?.chat && /^ +$/.test(last.text);
    this.warning.hidden = !alone;
    if (alone) setText(this.warning, this.scene.words.say("prompt.lone_space"));
  }

  #toggle() {
    this.open = !this.open;
    this.#show();
  }

  #show() {
    const { words } = this.scene;
    setText(this.toggle, words.say(this.open ? "prompt.hide" : "prompt.show"));
    this.toggle.setAttribute("aria-expanded", String(this.open));
    this.chips.node.hidden = !this.open;
    if (this.open && !this.filled) {
      this.#fill();
      const { run, reading } = this.scene.state();
      this.#shade(run.reading);
      this.#point(reading);
    }
  }

  #fill() {
    this.filled = true;
    const { prompt, own } = this.painted;
    prompt.slice(0, SHOWN_LIMIT).forEach((wire, i) => {
      const token = readToken(wire);
      const item = this.chips.push({ token });
      item.chip.removeAttribute("role");
      item.chip.removeAttribute("tabindex");
      item.chip.title = `${visible(token)} · ${token.id}`;
      if (own?.length && !own[i]) item.chip.classList.add("ft-added");
    });
    if (prompt.length > SHOWN_LIMIT) {
      const left = count(prompt.length - SHOWN_LIMIT);
      this.chips.node.append(make("span", "ft-quiet", this.scene.words.say("prompt.more", { n: left })));
    }
  }
}
