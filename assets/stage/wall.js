// A wall of bricks, one a cached token (several where there are many, and it says so).

import { box, make, setAttributes, setText, shape, watchWidth } from "./dom.js";
import { count } from "./numbers.js";

const BRICK = 9;
const PITCH = 12;
const MOST_BRICKS = 400;

export class Wall {
  constructor(scene) {
    this.scene = scene;
    this.width = 0;
    this.svg = shape("svg", { class: "ft-wall", role: "img" });
    this.prompt = shape("path", { class: "ft-brick-prompt" });
    this.answer = shape("path", { class: "ft-brick-answer" });
    this.ahead = shape("path", { class: "ft-brick-ahead" });
    this.svg.append(this.ahead, this.prompt, this.answer);
    this.scale = make("p", "ft-quiet ft-scale");
    this.node = box("ft-wall-box", this.svg, this.scale);
    this.reset();
    this.unwatch = watchWidth(this.node, (width) => { this.width = width; this.#draw(); });
  }

  reset() {
    this.least = 0;
    this.state = null;
  }

  /** `cached` tokens are in, `prompt` of them from the prompt; up to `total` may follow. */
  show(prompt, cached, total) {
    const state = [prompt, cached, Math.max(total, cached)];
    if (String(state) === String(this.state)) return;
    this.state = state;
    this.#draw();
  }

  #draw() {
    if (!this.state || !this.width) return;
    const [prompt, cached, total] = this.state;
    const each = Math.max(1, Math.ceil(total / MOST_BRICKS));
    const columns = Math.max(1, Math.floor((this.width + PITCH - BRICK) / PITCH));
    const [a, b, c] = [prompt, cached, total].map((n) => Math.ceil(n / each));
    this.prompt.setAttribute("d", bricks(0, a, columns, 0));
    this.answer.setAttribute("d", bricks(a, b, columns, 0));
    this.ahead.setAttribute("d", bricks(b, c, columns, 0.5));
    this.least = Math.max(this.least, Math.ceil(c / columns) * PITCH);
    setAttributes(this.svg, { width: this.width, height: this.least, "aria-label": this.#label(prompt, cached) });
    setText(this.scale, each > 1 ? this.scene.words.say("memory.brick", { n: count(each) }) : "");
    this.scale.hidden = each === 1;
  }

  #label(prompt, cached) {
    return this.scene.words.say("memory.wall", { prompt: count(prompt), answer: count(cached - prompt) });
  }

  destroy() {
    this.unwatch();
  }
}

function bricks(from, to, columns, inset) {
  let path = "";
  const side = BRICK - 2 * inset;
  for (let i = from; i < to; i += 1) {
    const x = (i % columns) * PITCH + inset;
    const y = Math.floor(i / columns) * PITCH + inset;
    path += `M${x + 2} ${y}h${side - 4}q2 0 2 2v${side - 4}q0 2-2 2h${4 - side}q-2 0-2-2v${4 - side}q0-2 2-2z`;
  }
  return path;
}
