// Running text made of tokens: one focusable chip a token, together still the text itself.
//
// Pieces of one character are grouped: the character is shown once, each piece shows its bytes.

import { make } from "./dom.js";
import { appendMarked, completes, decoded, encoded, isPiece, spacedBytes } from "./marks.js";

const JUMPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const RIGHT_TO_LEFT = /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}|\p{Script=Adlam}/u;
const JOINER = "\u200d";
const graphemes = typeof Intl.Segmenter === "function" ? new Intl.Segmenter() : null;

export class Chips {
  constructor(node) {
    this.node = node;
    this.clear();
  }

  clear() {
    this.node.replaceChildren();
    this.items = [];
    this.group = null;
    this.lastText = "";
    this.node.dir = "ltr";
    this.directed = false;
  }

  /**
   * Append a token. `text` is what it adds to the decoded text (null: decode it from its bytes),
   * `level` its shade from 0 to 4, `name` its accessible name.
   */
  push({ token, text = null, level = 0, name = "" }) {
    const item = { token, text: text ?? token.text, level, name, chip: this.#chip(token, level, name) };
    this.items.push(item);
    if (token.special) this.#pill(item);
    else if (this.#continues(item)) this.#joinGroup(item);
    else this.#plain(item);
    return item;
  }

  /** Show `shown` of an item's text, and the rest as withheld: seen, but no part of the text. */
  withhold(item, shown, rest) {
    if (item.token.special || !rest) return;
    const kept = make("span", "ft-withheld");
    kept.dataset.mark = rest;
    item.chip.replaceChildren();
    item.chip.classList.add("ft-has-withheld");
    this.#write(item, shown);
    item.chip.append(kept);
  }

  /** Let the pill of the last token, if it is special, say what it means here; its name on hover. */
  explainEnd(meaning) {
    const item = this.items.at(-1);
    if (!item?.token.special) return;
    item.chip.textContent = meaning;
    item.chip.title = item.token.text;
  }

  /** Text that was still held back belongs to the last token. */
  addTail(text) {
    const item = this.items.at(-1);
    if (!item || item.token.special) return;
    if (this.group) this.group.joined.append(text);
    else appendMarked(item.ink, text);
  }

  #chip(token, level, name) {
    const chip = make("span", `ft-token ft-s${level}`);
    chip.setAttribute("role", "button");
    chip.setAttribute("tabindex", "-1");
    if (name) chip.setAttribute("aria-label", name);
    chip.dataset.i = String(this.items.length);
    chip.dataset.id = String(token.id);
    return chip;
  }

  #plain(item) {
    this.group = null;
    item.chip.classList.toggle("ft-empty", item.text === "");
    if (/\S$/.test(this.lastText) && /^\S/.test(item.text)) {
      item.chip.classList.add("ft-joins");
      this.items.at(-2)?.chip.classList.add("ft-joined-on");
    }
    this.#write(item, item.text);
    this.#direct(item.text);
    this.node.append(item.chip);
    if (item.text) this.lastText = item.text;
  }

  /** As `dir="auto"`, for which a browser would look through the whole text again at each token. */
  #direct(text) {
    const letter = this.directed ? null : /\p{L}/u.exec(text);
    if (!letter) return;
    this.directed = true;
    if (RIGHT_TO_LEFT.test(letter[0])) this.node.dir = "rtl";
  }

  /** Put `text` into the chip; the space before a word stays outside of what is coloured. */
  #write(item, text) {
    const gap = /^ (?=\S)/.test(text);
    if (gap) item.chip.append(" ");
    item.ink = make("span", "ft-ink");
    appendMarked(item.ink, gap ? text.slice(1) : text);
    item.chip.append(item.ink);
  }

  #pill(item) {
    this.group = null;
    item.chip.classList.add("ft-pill");
    item.chip.append(item.token.text);
    this.node.append(item.chip);
    this.lastText = "";
  }

  #continues({ token }) {
    if (this.group && !this.group.whole) return isPiece(token);
    if (this.group && (this.group.text.endsWith(JOINER) || joinsGrapheme(this.group.text, token.text))) return true;
    this.group = null;
    return isPiece(token) || joinsGrapheme(this.items.at(-2)?.ink ? this.lastText : "", token.text);
  }

  #joinGroup(item) {
    if (!this.group) this.#openGroup(item);
    this.#addPiece(item);
  }

  #openGroup(item) {
    const node = make("span", "ft-group");
    const joined = make("span", "ft-joined");
    node.append(joined);
    this.group = { node, joined, hex: "", text: "", whole: false, members: [] };
    this.node.append(node);
    if (isPiece(item.token)) return;
    const before = this.items.at(-2);
    before.chip.replaceChildren();
    this.#addPiece(before);
  }

  #addPiece(item) {
    const { group } = this;
    item.group = group;
    group.members.push(Number(item.chip.dataset.i));
    item.ink = null;
    item.chip.classList.add("ft-piece");
    group.hex += item.token.bytes || encoded(item.token.text);
    item.chip.dataset.bytes = spacedBytes(item.token.bytes || encoded(item.token.text));
    group.node.append(item.chip);
    group.whole = completes(group.hex);
    group.text = decoded(group.hex);
    this.#direct(group.text);
    group.joined.replaceChildren();
    appendMarked(group.joined, group.whole ? group.text : group.text.replace(/\ufffd+$/, ""));
    this.lastText = group.text;
  }
}

/** By how many tokens an arrow key moves, 0 for other keys; in `node`, left is onward where its text runs left. */
export function jump({ key }, node = null) {
  const by = JUMPS[key] ?? 0;
  const sideways = key === "ArrowLeft" || key === "ArrowRight";
  return sideways && node && getComputedStyle(node).direction === "rtl" ? -by : by;
}

/** Whether the last character of `before` and the first of `after` are one to a reader. */
function joinsGrapheme(before, after) {
  if (!graphemes || !before || !after) return false;
  const last = before.slice(-16);
  if (last.charCodeAt(last.length - 1) < 0x300 && after.charCodeAt(0) < 0x300) return false;
  const starts = [...graphemes.segment(last + after)].map((part) => part.index);
  return !starts.includes(last.length);
}
