// The cumulative distribution after settings as a strip, with a needle where the draw fell.

import { box, make, setText } from "./dom.js";
import { cumulative } from "./choices.js";
import { visible } from "./marks.js";
import { draw } from "./numbers.js";

const LABEL_FROM = 0.12;
const SHADES = 4;

export class DrawStrip {
  constructor(scene) {
    this.scene = scene;
    this.parts = [];
    this.strip = make("div", "ft-strip");
    this.needle = make("i", "ft-needle");
    this.value = make("span", "ft-needle-value");
    this.node = box("ft-draw", box("ft-strip-box", this.strip, this.needle), box("ft-needle-line", this.value));
    this.node.setAttribute("role", "img");
  }

  /** A step as it was drawn. */
  show(step) {
    const { parts, rest } = cumulative(step);
    this.lay(parts, rest, step.token.id);
    this.#needle(step.draw);
  }

  /** Slices {from, to, id, text, ...} and a `rest` at the end; the one of `chosen` in the accent. */
  lay(parts, rest, chosen) {
    const slices = rest > 0 ? [...parts.filter((p) => !p.over), { from: 1 - rest, to: 1, others: true }, ...parts.filter((p) => p.over)] : parts;
    slices.forEach((part, i) => this.#part(i, part, part.others ? chosen === null : part.id === chosen));
    const used = slices.length;
    this.parts.forEach((node, i) => { node.hidden = i >= used; });
  }

  #part(i, part, chosen) {
    const node = (this.parts[i] ??= this.strip.appendChild(make("span")));
    const width = part.to - part.from;
    const name = `ft-part ft-part-${Math.min(i, SHADES)}${chosen ? " ft-chosen" : ""}`;
    if (node.className !== name) node.className = name;
    node.style.left = `${part.from * 100}%`;
    node.style.width = `${width * 100}%`;
    const label = part.others ? this.scene.words.say("candidates.strip_others") : visible(part);
    setText(node, width >= LABEL_FROM ? label : "");
  }

  #needle(u) {
    const { words } = this.scene;
    const drawn = u !== null && u !== undefined;
    this.needle.hidden = !drawn;
    const text = drawn ? draw(u) : words.say("candidates.no_draw");
    setText(this.value, text);
    this.node.setAttribute("aria-label", words.say("candidates.strip", { draw: text }));
    const at = drawn ? u : 0.5;
    this.needle.style.left = `${at * 100}%`;
    this.value.style.left = `clamp(19px, ${at * 100}%, 100% - 19px)`;
  }
}
