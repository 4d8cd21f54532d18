// One side of a race: its step time as the large number, its text, its measures.

import { box, make, region, setText } from "./dom.js";
import { appendMarked } from "./marks.js";
import { bytes, count, duration } from "./numbers.js";
import { decodeSeconds, prefillSeconds, stepsOf } from "./race.js";
import { quantile } from "./run.js";

const ROWS = ["prefill", "last", "read", "kept"];

export class RaceSide {
  constructor(scene, which) {
    const { words } = scene;
    Object.assign(this, { scene, which, painted: 0 });
    const name = words.say(`race.${which}`);
    this.pill = make("span", "ft-finish");
    this.figure = make("span");
    this.unit = make("span", "ft-quiet", words.say("race.a_step"));
    this.text = make("div", "ft-lane-text ft-race-text");
    this.text.setAttribute("role", "group");
    this.text.setAttribute("aria-label", words.say("race.text_of", { name }));
    this.error = make("p", "ft-error");
    this.values = {};
    const table = make("dl", "ft-measures");
    for (const key of ROWS) table.append(this.#row(key));
    this.node = region(name, `ft-lane ft-race-side ft-race-${which}`);
    this.node.append(
      box("ft-lane-head", make("h3", "ft-lane-name", name), this.pill),
      box("ft-big", this.figure, this.unit), this.text, this.error, table,
    );
    this.reset();
  }

  reset() {
    this.painted = 0;
    this.text.replaceChildren();
    this.error.hidden = true;
    this.ended = false;
  }

  /** Paint what is new of `run`; `parted` is the step at which the sides chose differently. */
  paint(run, parted) {
    const steps = stepsOf(run);
    const more = this.painted < steps.length;
    for (; this.painted < steps.length; this.painted += 1) this.#append(steps[this.painted], this.painted === parted);
    if (more) this.text.scrollTop = this.text.scrollHeight; // once: it makes the browser lay out the whole page
    const lane = run.lanes[0];
    if (lane?.done && !this.ended) this.#end(lane);
    this.#say(run, steps);
  }

  #append(step, parting) {
    const node = make("span", parting ? "ft-race-parting" : "");
    appendMarked(node, step.text);
    this.text.append(node);
  }

  #end(lane) {
    this.ended = true;
    if (lane.finished?.tail) appendMarked(this.text, lane.finished.tail);
    if (lane.reason === "stop_token") this.text.append(make("span", "ft-pill", this.scene.words.say("answer.end")));
  }

  #say(run, steps) {
    const { words } = this.scene;
    const lane = run.lanes[0];
    const seconds = decodeSeconds(run);
    const last = steps.at(-1);
    setText(this.pill, words.say(lane?.done ? `compare.finish.${lane.reason}` : "compare.running"));
    this.pill.dataset.state = lane?.done ? lane.reason : "running";
    const message = lane?.failed?.message ?? "";
    setText(this.error, message);
    this.error.hidden = !message;
    setText(this.figure, seconds.length ? duration(quantile([...seconds].sort((a, b) => a - b), 0.5)) : "–");
    setText(this.values.prefill, duration(prefillSeconds(run)));
    setText(this.values.last, duration(seconds.at(-1)));
    setText(this.values.read, last ? words.many("tokens", last.positions_computed, count(last.positions_computed)) : "–");
    setText(this.values.kept, this.#kept(last));
  }

  #kept(last) {
    if (!last) return "–";
    if (this.which === "uncached") return this.scene.words.say("race.nothing");
    return bytes(last.kv_used_bytes);
  }

  #row(key) {
    this.values[key] = make("dd");
    return box("ft-measure", make("dt", "", this.scene.words.say(`race.row.${key}`)), this.values[key]);
  }
}
