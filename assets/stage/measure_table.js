// The measures of all lanes in one table: sorted by any column, saved as CSV.

import { save } from "../trace_file.js";
import { button, make, region, setAttributes, setText } from "./dom.js";
import { divergence, measures } from "./lanes.js";
import { bytes, count, duration, percent, rate, significant } from "./numbers.js";
import { describe, laneName } from "./settings.js";

const LIVE_MS = 500;
const two = (value) => percent(value, 2);
const bits = (value) => (value === null ? "–" : significant(value));

/** Key, as `compare --json` has it, term of the glossary, and how a value is written. */
const COLUMNS = [
  ["diverges_at", null, (value, words) => (value === null ? words.say("compare.never") : count(value + 1))],
  ["mean_surprisal_bits", "surprisal", bits],
  ["perplexity", "perplexity", rate],
  ["mean_entropy_bits", "entropy", bits],
  ["mean_kept_mass", "kept_mass", (value) => percent(value)],
  ["effective_choices", "effective-choices", rate],
  ["distinct_1", "distinct-1", two],
  ["distinct_2", "distinct", two],
  ["repeated_share", "repeated", two],
  ["tokens", null, count],
  ["seconds", "lane-time", duration],
  ["decode_tokens_per_second", "decode-rate", rate],
  ["kv_used_bytes", "kv-cache", bytes],
  ["finish_reason", null, (value, words) => words.say(value ? `compare.finish.${value}` : "compare.running")],
];

export class MeasureTable {
  constructor(scene) {
    const { words } = scene;
    Object.assign(this, { scene, heads: new Map() });
    this.head = make("tr");
    this.head.append(setAttributes(make("th", "", words.say("compare.table.run")), { scope: "col" }), ...COLUMNS.map((column) => this.#head(column)));
    this.body = make("tbody");
    const table = make("table", "ft-measure-table");
    const top = make("thead");
    top.append(this.head);
    table.append(top, this.body);
    const scroll = make("div", "ft-measure-scroll");
    setAttributes(scroll, { tabindex: "0", role: "group", "aria-label": words.say("compare.table.title") });
    scroll.append(table);
    const bar = make("div", "ft-measure-bar");
    this.saving = button("ft-toggle", words.say("compare.table.csv"), () => save("comparison.csv", this.csv(), "text/csv"));
    bar.append(make("h2", "ft-title", words.say("compare.table.title")), this.saving);
    this.node = region(words.say("compare.table.title"), "ft-card-measures");
    this.node.append(bar, scroll);
    this.reset();
  }

  reset() {
    Object.assign(this, { shown: "", at: 0, rows: [], sorted: null, down: false, lines: new Map(), order: "" });
    this.body.replaceChildren();
    this.#arrows();
  }

  /** `reference` is the lane that first differences are counted against; draws of one lane go by their seeds. */
  paint(run, reference, bySeed = false) {
    this.bySeed = bySeed;
    this.node.hidden = !run.lanes.length;
    const key = `${run.steps},${run.done},${run.lanes.map((lane) => lane.reason).join()},${reference?.index}`;
    const now = performance.now();
    if (key === this.shown || !reference || (!run.done && this.shown && now - this.at < LIVE_MS)) return;
    Object.assign(this, { shown: key, at: now, reference });
    this.rows = run.lanes.map((lane) => ({
      lane, found: { diverges_at: lane === reference ? null : divergence(reference, lane), ...measures(run, lane) },
    }));
    this.#fill();
  }

  /** The table as it stands, values in full: one row a run, named as in `compare --json`. */
  csv() {
    const { words } = this.scene;
    const names = ["run", "settings", ...COLUMNS.map(([key]) => key)];
    const rows = this.#inOrder().map(({ lane, found }) => [
      this.#name(lane), describe(words, lane), ...COLUMNS.map(([key]) => found[key]),
    ]);
    return [names, ...rows].map((row) => `${row.map(cell).join()}\r\n`).join("");
  }

  #head([key, term]) {
    const { words, glossary } = this.scene;
    const label = words.say(`compare.table.${key}`);
    const node = setAttributes(make("th"), { scope: "col" });
    const sort = button("ft-sort", "", () => this.#sort(key));
    node.append(term ? glossary.term(term, label) : label, sort);
    this.heads.set(key, { node, sort, label });
    return node;
  }

  #sort(key) {
    this.down = this.sorted === key && !this.down;
    this.sorted = key;
    this.#fill();
  }

  #arrows() {
    const { words } = this.scene;
    for (const [key, { node, sort, label }] of this.heads) {
      const way = key !== this.sorted ? "none" : this.down ? "descending" : "ascending";
      setAttributes(node, { "aria-sort": way });
      setText(sort, way === "none" ? "↕" : this.down ? "↓" : "↑");
      setAttributes(sort, { "aria-label": words.say("compare.table.sort", { name: label }) });
    }
  }

  /** Cells are written where they stand: while a run grows nothing is built anew, so nothing flashes. */
  #fill() {
    const { words } = this.scene;
    this.#arrows();
    const rows = this.#inOrder().map(({ lane, found }) => {
      const { row, cells } = this.#line(lane);
      for (const [key, , write] of COLUMNS) {
        const text = key === "diverges_at" && lane === this.reference ? words.say("compare.is_reference") : write(found[key], words);
        setAttributes(setText(cells.get(key), text), { "data-value": found[key] ?? "" });
      }
      return row;
    });
    const order = rows.map((row) => row.dataset.lane).join();
    if (order !== this.order) this.body.replaceChildren(...rows);
    this.order = order;
  }

  #name(lane) {
    const { words } = this.scene;
    return this.bySeed ? `${words.say("settings.seed")} ${lane.decoding.seed}` : laneName(words, lane);
  }

  #line(lane) {
    if (!this.lines.has(lane.index)) {
      const row = setAttributes(make("tr"), { "data-lane": lane.index });
      const cells = new Map(COLUMNS.map(([key]) => [key, setAttributes(make("td"), { "data-key": key })]));
      row.append(setAttributes(make("th", "", this.#name(lane)), { scope: "row" }), ...cells.values());
      this.lines.set(lane.index, { row, cells });
    }
    return this.lines.get(lane.index);
  }

  /** Unknown values come last either way. */
  #inOrder() {
    if (!this.sorted) return this.rows;
    const value = (row) => row.found[this.sorted];
    const known = this.rows.filter((row) => value(row) !== null);
    const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    known.sort((a, b) => (this.down ? order(b, a) : order(a, b)));
    return [...known, ...this.rows.filter((row) => value(row) === null)];
  }
}

/** A cell of a CSV file; a text that a spreadsheet would take for a formula is kept a text. */
function cell(value) {
  if (value === null || typeof value === "number") return String(value ?? "");
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
