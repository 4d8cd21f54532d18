// The words themselves over the timeline: each at its own place where there is room, else running text around the cursor.

import { setAttributes, setText, shape } from "./dom.js";
import { isPiece, visible } from "./marks.js";

const FONT = 12;
const SPACE_PX = 4;
const MOST_WORDS = 60;
const LONGEST = 24;

export class TextTrack {
  constructor(svg, baseline) {
    this.baseline = baseline;
    this.group = svg.appendChild(shape("g", { class: "ft-words", "aria-hidden": "true" }));
    this.pool = [];
    this.widths = new Map();
    this.pen = document.createElement("canvas").getContext("2d");
    this.family = null;
  }

  /** Words around token `here`, 0 the first of the prompt: `tokenAt(i)` of `total`, the middle of each at `middle(i)`. */
  show({ here, total, prompt, left, right, middle, tokenAt }) {
    let used = 0;
    const place = (i, x, width) => this.#put(used++, i, x, width, i === here, i < prompt, tokenAt(i));
    const [word] = this.#word(tokenAt(here), true);
    const first = Math.max(left, Math.min(right - word, middle(here) - word / 2));
    place(here, first, word);
    let edge = first + word;
    for (let i = here + 1; i < total && used < MOST_WORDS; i += 1) {
      const [width, apart] = this.#word(tokenAt(i));
      const x = Math.max(edge + apart, middle(i) - width / 2);
      if (x + width > right) break;
      place(i, x, width);
      edge = x + width;
    }
    edge = first;
    let apart = this.#word(tokenAt(here))[1];
    for (let i = here - 1; i >= 0 && used < MOST_WORDS; i -= 1) {
      const [width, before] = this.#word(tokenAt(i));
      const x = Math.min(edge - apart - width, middle(i) - width / 2);
      if (x < left) break;
      place(i, x, width);
      [edge, apart] = [x, before];
    }
    this.pool.forEach((node, n) => { node.style.display = n < used ? "" : "none"; });
  }

  hide() {
    for (const node of this.pool) node.style.display = "none";
  }

  #put(n, i, x, width, here, ofPrompt, token) {
    const node = (this.pool[n] ??= this.group.appendChild(shape("text", { y: this.baseline })));
    setText(node, said(token));
    const kind = `${here ? "ft-word-here" : ""}${ofPrompt ? " ft-word-prompt" : ""}${token.special ? " ft-word-special" : ""}`;
    setAttributes(node, { x: Math.round(x * 10) / 10, class: kind.trim() });
  }

  /** Width of a token's word in pixels, and its distance from the word before. */
  #word(token, bold = false) {
    const text = `${bold ? 600 : 400} ${said(token)}`;
    this.family ??= getComputedStyle(this.group).fontFamily;
    let width = this.widths.get(text);
    if (width === undefined) {
      this.pen.font = `${text.slice(0, 3)} ${token.special ? 11 : FONT}px ${this.family}`;
      width = this.pen.measureText(text.slice(4)).width;
      if (this.widths.size > 4000) this.widths.clear();
      this.widths.set(text, width);
    }
    return [width, token.special || isPiece(token) || /^\s/.test(token.text) ? SPACE_PX : 0];
  }
}

/** A token as running text: its outer spaces are the gaps between the words. */
function said(token) {
  const text = visible(token).replace(/^␣+(?=.)/, "").replace(/␣+$/, (all, at) => (at ? "" : all));
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
