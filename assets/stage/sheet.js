// On a phone: a sheet at the bottom with the token that was tapped, so that the page does not jump.

import { box, button, make, setText } from "./dom.js";
import { ranked } from "./choices.js";
import { onEscape } from "./escape.js";
import { whyKey, whyValues } from "./candidates.js";
import { visible } from "./marks.js";
import { count, percent } from "./numbers.js";
import { provable } from "./provable.js";
import { stageName } from "./settings.js";
import { Sentence } from "./words.js";

const TOP = 5;
const ROOM = 12;
const PHONE = "(max-width: 640px)";

export class Sheet {
  constructor(scene, layer) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.phone = window.matchMedia(PHONE);
    this.title = make("h2", "ft-title");
    this.token = make("code", "ft-token-big");
    this.figures = provable(scene, "processed");
    this.figures.title = words.say("prove.open");
    this.why = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.list = make("div", "ft-sheet-list");
    this.previous = button("ft-button", words.say("sheet.previous"), () => this.#step(-1));
    this.next = button("ft-button", words.say("sheet.next"), () => this.#step(1));
    const close = button("ft-button", words.say("sheet.close"), () => this.close(true));
    this.node = box("ft-sheet", this.title, box("ft-big", this.token, this.figures), this.why.node, this.list,
      box("ft-sheet-buttons", this.previous, this.next, close));
    this.node.setAttribute("role", "dialog");
    this.node.setAttribute("aria-label", words.say("sheet.name"));
    this.node.hidden = true;
    this.deafen = onEscape(() => this.close(true));
    layer.append(this.node);
  }

  /** Open on a narrow screen; elsewhere the cards are beside the text already. */
  open(from) {
    if (!this.phone.matches) return;
    this.from = from;
    this.node.hidden = false;
    this.node.setAttribute("tabindex", "-1");
    this.node.focus({ preventScroll: true });
  }

  /** Close the sheet; returns whether it was open. */
  close(refocus = false) {
    if (this.node.hidden) return false;
    this.node.hidden = true;
    if (refocus) this.from?.focus({ preventScroll: true });
    return true;
  }

  destroy() {
    this.deafen();
  }

  paint({ run, lane, cursor }) {
    const step = lane?.steps[cursor];
    if (this.node.hidden) return;
    if (!step || !this.phone.matches) {
      this.close();
      return;
    }
    const { words } = this.scene;
    setText(this.title, words.say("candidates.title", { n: count(cursor + 1) }));
    setText(this.token, visible(step.token));
    setText(this.figures, percent(step.processed_probability, run.figures));
    this.why.show(whyKey(step), whyValues(step, run, words));
    this.previous.disabled = cursor === 0;
    this.next.disabled = cursor >= lane.steps.length - 1;
    this.#list(step, run.figures);
    this.#reveal(this.scene.chipOf(cursor));
  }

  /** Keep the token above the sheet: scroll by no more than it takes. */
  #reveal(chip) {
    const line = chip?.getClientRects()[0];
    if (!line) return;
    const below = line.bottom + ROOM - this.node.getBoundingClientRect().top;
    if (below > 0) window.scrollBy(0, below);
    else if (line.top < ROOM) window.scrollBy(0, line.top - ROOM);
  }

  #step(by) {
    this.scene.moveBy(by);
  }

  #list(step, figures) {
    const { words } = this.scene;
    const top = ranked(step).slice(0, TOP);
    const head = box("ft-sheet-row ft-head", make("span", "", words.say("candidates.token")),
      make("span", "ft-number", words.say("candidates.processed")), make("span", "ft-number", words.say("candidates.raw")));
    this.list.replaceChildren(head, ...top.map((candidate) => {
      const name = make("span", "ft-name", visible(candidate));
      if (candidate.removedBy) name.append(make("i", "ft-tag", stageName(words, candidate.removedBy)));
      const row = box("ft-sheet-row", name, make("b", "ft-number", percent(candidate.processed, figures)),
        make("span", "ft-number", percent(candidate.raw, figures)));
      row.classList.toggle("ft-chosen", candidate.id === step.token.id);
      row.classList.toggle("ft-removed", Boolean(candidate.removedBy));
      return row;
    }));
  }
}
