// Draw 200 times here: how often each candidate comes, beside how often it should.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { ranked } from "./choices.js";
import { tally } from "./many_draws.js";
import { visible } from "./marks.js";
import { count, rate } from "./numbers.js";

const DRAWS = 200;
const SHOWN = 8;

export class Histogram {
  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.seed = 1;
    this.step = null;
    this.said = make("p", "ft-why");
    this.list = setAttributes(make("div", "ft-histogram"), { role: "list" });
    this.rows = [];
    this.again = button("ft-link", words.say("histogram.again"), () => this.#again());
    this.note = make("p", "ft-quiet", words.say("histogram.simulated"));
    this.node = box("", this.said, this.list, this.again, this.note);
  }

  show({ lane, cursor }) {
    const step = lane.steps[cursor];
    if (step === this.step) return;
    this.step = step;
    this.#draw();
  }

  #again() {
    this.seed += 1;
    this.#draw();
  }

  #draw() {
    const { words } = this.scene;
    const slices = whole(this.step);
    const counts = tally(slices.map((slice) => slice.share), DRAWS, this.seed);
    const rows = shown(slices.map((slice, i) => ({ ...slice, count: counts[i] })));
    const most = Math.max(...rows.map((row) => Math.max(row.count, row.share * DRAWS)));
    rows.forEach((row, i) => this.#fill(this.rows[i] ?? this.#row(), row, most));
    this.rows.forEach((row, i) => { row.node.hidden = i >= rows.length; });
    const mine = rows.find((row) => row.id === this.step.token.id) ?? rows.at(-1);
    setText(this.said, words.say(slices.length === 1 ? "histogram.only" : "histogram.said", {
      n: count(DRAWS), token: visible(this.step.token), count: count(mine.count), expected: rate(mine.share * DRAWS), seed: this.seed,
    }));
    this.again.hidden = slices.length === 1;
  }

  #row() {
    const row = {
      node: setAttributes(make("div", "ft-row ft-histogram-row"), { role: "listitem" }), name: make("span", "ft-name"), bar: make("i", "ft-thick"),
      mark: make("i", "ft-expected"), count: make("b", "ft-number"), expected: make("span", "ft-number"),
    };
    row.node.append(row.name, box("ft-bars", row.bar, row.mark), row.count, row.expected);
    this.list.append(row.node);
    this.rows.push(row);
    return row;
  }

  #fill(row, { id, share, count: n, token }, most) {
    const { words } = this.scene;
    const name = token ? visible(token) : words.say("histogram.others");
    const expected = rate(share * DRAWS);
    row.node.classList.toggle("ft-chosen", id === this.step.token.id);
    setText(row.name, name);
    row.bar.style.transform = `scaleX(${n / most})`;
    row.mark.style.left = `${(share * DRAWS * 100) / most}%`;
    setText(row.count, count(n));
    setText(row.expected, expected);
    setAttributes(row.node, { "aria-label": words.say("histogram.row", { token: name, n: count(n), expected }), "data-count": n });
  }
}

/** All that can be drawn at `step`, as shares that make 1; what is not recorded is one of them. */
function whole(step) {
  const slices = ranked(step).filter((c) => c.processed > 0).map((c) => ({ id: c.id, share: c.processed, token: c }));
  const left = 1 - slices.reduce((sum, slice) => sum + slice.share, 0);
  return slices.length < step.kept_count && left > 0 ? [...slices, { id: null, share: left, token: null }] : slices;
}

/** The first few rows, with everything else as one. */
function shown(rows) {
  if (rows.length <= SHOWN + 1) return rows;
  const [first, last] = [rows.slice(0, SHOWN), rows.slice(SHOWN)];
  const together = (key) => last.reduce((sum, row) => sum + row[key], 0);
  return [...first, { id: null, token: null, share: together("share"), count: together("count") }];
}
