// The triangle: a row a step, a column a position. What a step computes is filled, so areas are counts.

import { make, setAttributes, setText, shape, watchWidth } from "./dom.js";
import { count } from "./numbers.js";

const LEAST_HEIGHT = 110;
const MOST_HEIGHT = 330;
const PROPORTION = 0.6;
const MOST_CELL = 26;
const GRID_FROM_PX = 4;
const LEAST_SEEN_PX = 1.5;

export class Triangle {
  /** `which` is "cached" or "uncached". */
  constructor(scene, which) {
    Object.assign(this, { scene, which, width: 0, state: null });
    this.svg = shape("svg", { class: "ft-triangle", role: "img" });
    const path = (className) => this.svg.appendChild(shape("path", { class: className, d: "" }));
    this.again = path("ft-cell-again");
    this.prompt = path("ft-cell-prompt");
    this.fresh = path("ft-cell-new");
    this.grid = path("ft-cell-grid");
    this.ahead = path("ft-cell-ahead");
    this.name = make("span");
    this.figure = make("b");
    const caption = make("figcaption", "ft-triangle-caption");
    caption.append(this.name, this.figure);
    this.thick = make("p", "ft-quiet", scene.words.say("race.thicker"));
    this.frame = make("div", "ft-triangle-frame");
    this.frame.append(this.svg);
    this.node = make("figure", "ft-triangle-box");
    this.node.append(caption, this.frame, this.thick);
    this.unwatch = watchWidth(this.frame, (width) => { this.width = width; this.#draw(); });
  }

  /** `steps` of `planned` rows are filled, after a prompt of `prompt` positions; `computed` is their area. */
  show({ prompt, steps, planned, computed }) {
    const state = [prompt, steps, Math.max(planned, steps, 1), computed];
    if (String(state) === String(this.state)) return;
    this.state = state;
    const { words } = this.scene;
    setText(this.name, words.say(`race.${this.which}`));
    setText(this.figure, words.many("race.kv_pairs", computed, count(computed)));
    setAttributes(this.svg, {
      "aria-label": words.say(`race.triangle_${this.which}`, { prompt: count(prompt), steps: count(steps), n: count(computed) }),
      "data-computed": computed,
    });
    this.#draw();
  }

  #draw() {
    if (!this.state || !this.width) return;
    const [prompt, steps, rows] = this.state;
    const columns = Math.max(1, prompt + rows - 1);
    const height = Math.round(Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, this.width * PROPORTION)));
    const wide = cell(this.width - 1, columns);
    const high = cell(height - 1, rows);
    const at = { x: (i) => round(i * wide + 0.5), y: (i) => round(i * high + 0.5), wide, high };
    setAttributes(this.svg, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
    setAttributes(this.prompt, { d: steps ? `M${at.x(0)} ${at.y(0)}H${at.x(prompt)}V${at.y(1)}H${at.x(0)}z` : "" });
    setAttributes(this.fresh, { d: diagonal(at, prompt, steps) });
    setAttributes(this.again, { d: this.which === "uncached" ? stairs(at, prompt - 1, 1, steps) : "" });
    setAttributes(this.grid, { d: lines(at, columns, rows) });
    setAttributes(this.ahead, { d: rows ? stairs(at, prompt, 0, rows) : "" });
    this.thick.hidden = this.which === "uncached" || Math.min(wide, high) >= LEAST_SEEN_PX;
  }

  destroy() {
    this.unwatch();
  }
}

/** The side of a cell: whole pixels where there is room, so that edges are sharp. */
function cell(room, n) {
  const side = Math.min(MOST_CELL, room / n);
  return side >= GRID_FROM_PX ? Math.floor(side) : side;
}

/** Rows `from` to `to`, each one `first` positions wide and one more a row. */
function stairs(at, first, from, to) {
  if (to <= from || first + to - 1 < 1) return "";
  let path = `M${at.x(0)} ${at.y(from)}`;
  for (let row = from; row < to; row += 1) path += `H${at.x(first + row)}V${at.y(row + 1)}`;
  return `${path}H${at.x(0)}z`;
}

/** The one new position of each row after the first. */
function diagonal(at, prompt, steps) {
  const wide = round(Math.max(LEAST_SEEN_PX, at.wide));
  const high = round(Math.max(LEAST_SEEN_PX, at.high));
  let path = "";
  for (let row = 1; row < steps; row += 1) path += `M${at.x(prompt + row - 1)} ${at.y(row)}h${wide}v${high}h-${wide}z`;
  return path;
}

/** Lines in the card's colour between the cells: seen only where something is filled. */
function lines(at, columns, rows) {
  let path = "";
  if (at.wide >= GRID_FROM_PX) for (let i = 1; i < columns; i += 1) path += `M${at.x(i)} ${at.y(0)}V${at.y(rows)}`;
  if (at.high >= GRID_FROM_PX) for (let i = 1; i < rows; i += 1) path += `M${at.x(0)} ${at.y(i)}H${at.x(columns)}`;
  return path;
}

const round = (x) => Math.round(x * 100) / 100;
