// One lane of a comparison: its name and settings, its text as it parts from the reference, its measures.

import { Chips } from "./chips.js";
import { box, button, make, region, setAttributes, setText } from "./dom.js";
import { spoken } from "./marks.js";
import { count, percent } from "./numbers.js";
import { describe, laneName } from "./settings.js";

const CHIPS_A_FRAME = 800;
const ROWS = ["leaves", "tokens"];

export class LaneCard {
  constructor(scene, lane) {
    const { words } = scene;
    Object.assign(this, { scene, lane, painted: 0, left: undefined, reference: null, ended: false });
    const name = laneName(words, lane);
    this.pill = make("span", "ft-finish");
    this.inspect = button("ft-link ft-inspect", words.say("compare.inspect"), () => scene.send("inspect", { run: this.run.id, lane: lane.index }));
    setAttributes(this.inspect, { "aria-label": words.say("compare.inspect_name", { run: name }) });
    this.inspect.hidden = true;
    this.chips = new Chips(make("div", "ft-lane-text"));
    this.chips.node.setAttribute("role", "group");
    this.chips.node.setAttribute("aria-label", words.say("answer.name"));
    this.error = make("p", "ft-error");
    this.error.hidden = true;
    this.values = {};
    const table = make("dl", "ft-measures");
    for (const key of ROWS) table.append(this.#row(key));
    this.node = region(name, "ft-lane");
    this.node.append(
      box("ft-lane-head", make("h3", "ft-lane-name", name), this.inspect, this.pill),
      make("p", "ft-quiet", describe(words, lane)), this.chips.node, this.error, table,
    );
    scene.listenToLane(this);
  }

  /** Paint what is new; `left` is the step at which the lane leaves `reference`, null: not yet. */
  paint(run, reference, left) {
    const { lane } = this;
    this.run = run;
    this.inspect.hidden = Boolean(this.scene.alone) || !run.done || !lane.steps.length;
    const from = this.painted;
    const upTo = Math.min(lane.steps.length, from + CHIPS_A_FRAME);
    for (; this.painted < upTo; this.painted += 1) this.#append(lane.steps[this.painted], run);
    this.#mark(reference, left, from);
    if (lane.done && !this.ended && this.painted === lane.steps.length) this.#end();
    this.#say(run, left);
    return this.painted;
  }

  #append(step, run) {
    const name = this.scene.words.say("answer.token", {
      text: spoken(step.token), p: percent(step.processed_probability, run.figures),
    });
    const { chip } = this.chips.push({ token: step.token, text: step.text, name });
    if (!this.painted) chip.setAttribute("tabindex", "0");
  }

  /** What is shared is pale, the token at which the lane leaves is filled, the rest is as it is. */
  #mark(reference, left, from) {
    const asBefore = left === this.left && reference === this.reference;
    Object.assign(this, { left, reference });
    const { items } = this.chips;
    const own = this.lane === reference;
    for (let i = asBefore ? from : 0; i < items.length; i += 1) {
      items[i].chip.classList.toggle("ft-shared", !own && (left === null || i < left));
      items[i].chip.classList.toggle("ft-parting", i === left);
    }
  }

  #end() {
    this.ended = true;
    const { finished } = this.lane;
    if (this.lane.reason === "stop_token") this.chips.explainEnd(this.scene.words.say("answer.end"));
    if (finished?.tail) this.chips.addTail(finished.tail);
    const from = this.lane.steps.length - (finished?.withheld_steps ?? 0);
    let room = (finished?.text ?? "").length - this.lane.steps.slice(0, from).reduce((n, s) => n + s.text.length, 0);
    for (let i = from; i < this.lane.steps.length; i += 1) {
      const { text } = this.lane.steps[i];
      const shown = text.slice(0, Math.max(0, room));
      this.chips.withhold(this.chips.items[i], shown, text.slice(shown.length));
      room -= shown.length;
    }
  }

  #say(run, left) {
    const { words } = this.scene;
    const { lane, values } = this;
    setText(this.pill, words.say(lane.done ? `compare.finish.${lane.reason}` : "compare.running"));
    this.pill.dataset.state = lane.done ? lane.reason : "running";
    this.error.hidden = !lane.failed;
    if (lane.failed) setText(this.error, lane.failed.message);
    setText(values.leaves, this.#leaves(run, left));
    setText(values.tokens, count(lane.steps.length));
  }

  #leaves(run, left) {
    const { words } = this.scene;
    if (this.lane === this.reference) return words.say("compare.is_reference");
    if (left !== null) return words.say("compare.at_token", { n: count(left + 1) });
    return words.say(run.done ? "compare.never" : "compare.not_yet");
  }

  #row(key) {
    this.values[key] = make("dd");
    return box("ft-measure", make("dt", "", this.scene.words.say(`compare.${key}`)), this.values[key]);
  }
}
