// Rows of candidates that can be taken: a press on a row chooses it and shows its button, the button branches there.
//
// Arrow keys walk the rows, Enter on one branches. What cannot go on has no buttons, and a sentence says why.

import { button, make, setAttributes, setText } from "./dom.js";
import { visible } from "./marks.js";
import { percent } from "./numbers.js";

const KEYS = { ArrowDown: (at) => at + 1, ArrowUp: (at) => at - 1, Home: () => 0, End: () => Infinity };
const DOUBLE = 2;

export class Taking {
  constructor(scene) {
    Object.assign(this, { scene, rows: [], view: null });
    this.said = make("p", "ft-quiet ft-take-said");
  }

  /** The rows of `list`, which call `attach` for each of theirs. */
  watch(list) {
    list.classList.add("ft-takeable");
    list.addEventListener("keydown", (event) => this.#onKey(event));
    list.addEventListener("focusin", ({ target }) => this.#rove(target));
  }

  attach(row) {
    row.take = button("ft-take", this.scene.words.say("take.here"), (event) => this.#take(row, event));
    row.node.append(row.take);
    row.node.addEventListener("click", ({ target }) => {
      if (row.take.contains(target) || row.take.hidden || String(window.getSelection())) return;
      row.take.focus({ preventScroll: true });
    });
    this.rows.push(row);
    this.#ready(row);
  }

  fill(row, candidate, figures) {
    row.id = candidate.id;
    const name = { token: visible(candidate), p: percent(candidate.raw, figures) };
    setAttributes(row.take, { "aria-label": this.scene.words.say("take.name", name) });
  }

  /** What can be done with the run on the stage now. */
  paint({ run, lane, cursor, steering }) {
    const { words, alone } = this.scene;
    this.view = { run, lane, cursor };
    const can = Boolean(steering?.back) && !alone && run.lanes.length === 1;
    const why = steering?.why || words.say(run.lanes.length > 1 ? "take.one_run" : "steer.no_run");
    setText(this.said, can ? words.say(run.done ? "take.how" : "take.running") : why);
    if (can === this.can) return;
    this.can = can;
    this.rows.forEach((row) => this.#ready(row));
  }

  #ready({ node, take }) {
    take.hidden = !this.can;
    take.tabIndex = this.#shown()[0]?.take === take ? 0 : -1;
    node.classList.toggle("ft-can-take", Boolean(this.can));
  }

  /** A key that is held down, or a third click of a hurry, is no further wish. */
  #take(row, event) {
    if (event.detail > DOUBLE || (!event.detail && this.held) || !this.can || !this.view.lane) return;
    const { run, cursor } = this.view;
    this.scene.send("steer", { run: run.id, action: "branch", step: cursor, id: row.id });
  }

  #shown() {
    return this.rows.filter(({ node }) => !node.hidden);
  }

  #rove(target) {
    for (const { take } of this.rows) take.tabIndex = take === target ? 0 : -1;
  }

  #onKey(event) {
    this.held = event.repeat && event.key !== "Tab";
    const to = KEYS[event.key];
    const rows = this.#shown();
    const at = rows.findIndex(({ take }) => take === event.target);
    if (!to || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    rows[Math.min(rows.length - 1, Math.max(0, to(at)))].take.focus();
  }
}
