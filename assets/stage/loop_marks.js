// Loops in the answer: underlined in the text, told in a sentence with the entropy that fell there, and a way out.

import { box, button, make, setAttributes } from "./dom.js";
import { collapse, loopsOf } from "./loops.js";
import { visible } from "./marks.js";
import { count, rate } from "./numbers.js";

const EVERY = 16;
const SAID = 3;
const PENALTY = 1.3;
const STRONGER = 0.2;
const MOST = 2;
const WORDS_SHOWN = 8;

export class LoopMarks {
  constructor(scene) {
    this.scene = scene;
    this.node = setAttributes(make("div", "ft-loops"), { role: "group", "aria-label": scene.words.say("loops.name") });
    this.reset();
  }

  reset() {
    for (const chip of this.marked ?? []) chip.classList.remove("ft-loop", "ft-loop-first");
    Object.assign(this, { looked: 0, marked: [], said: "", lane: null, can: false });
    this.node.replaceChildren();
    this.node.hidden = true;
  }

  /** Look again when there is enough that is new; an answer that has ended is looked at once more. */
  paint({ run, lane, steering }) {
    if (!lane) return;
    const n = lane.steps.length;
    const can = Boolean(steering?.back) && lane.done && run.lanes.length === 1;
    if (n < this.looked) this.reset();
    if (n === this.looked ? this.ended === lane.done && this.can === can : n - this.looked < EVERY && !lane.done) return;
    Object.assign(this, { looked: n, ended: lane.done, lane, run, can });
    this.#show(loopsOf(lane.ids), lane);
  }

  #show(loops, lane) {
    for (const loop of loops) this.#mark(loop);
    const said = JSON.stringify([loops, lane.done, this.can]);
    if (said === this.said) return;
    this.said = said;
    this.node.hidden = !loops.length;
    this.node.replaceChildren(...loops.slice(0, SAID).map((loop) => this.#tell(loop, lane)));
  }

  #mark({ first, period, length }) {
    for (let i = first; i < first + length; i += 1) {
      const chip = this.scene.chipOf(i);
      if (!chip || chip.classList.contains("ft-loop")) continue;
      chip.classList.add("ft-loop");
      if ((i - first) % period === 0) chip.classList.add("ft-loop-first");
      this.marked.push(chip);
    }
  }

  #tell(loop, lane) {
    const { words } = this.scene;
    const { first, period, length } = loop;
    const tokens = lane.steps.slice(first, first + Math.min(period, WORDS_SHOWN)).map((step) => visible(step.token)).join("");
    const { before, within } = collapse(lane.steps, loop);
    const text = words.say(before === null ? "loops.said_at_once" : "loops.said", {
      text: period > WORDS_SHOWN ? `${tokens}…` : tokens, n: count(period), times: count(Math.floor(length / period)),
      from: count(first + 1), before: rate(before), within: rate(within),
    });
    const line = box("ft-loop-line", make("span", "", text));
    line.title = words.say("loops.definition");
    line.append(button("ft-link", words.say("loops.go"), () => this.scene.move(first + period, { focus: true })));
    const penalty = this.can && !this.scene.alone ? stronger(lane.decoding.repetition_penalty ?? 1) : null;
    if (penalty) line.append(this.#retry(first, penalty));
    return line;
  }

  /** A branch at the loop's first token; the control follows, so that what goes on from it does so as well. */
  #retry(first, penalty) {
    const { words, send } = this.scene;
    const press = button("ft-button", words.say("loops.retry", { penalty }), () => {
      send("steer", { run: this.run.id, action: "penalise", step: first, penalty });
      send("set", { repetition_penalty: penalty });
    });
    press.title = words.say("loops.retry_title");
    return press;
  }
}

/** The penalty to try next, null where the strongest is on already. */
function stronger(penalty) {
  if (penalty >= MOST) return null;
  return penalty <= 1 ? PENALTY : Math.min(MOST, Math.round((penalty + STRONGER) * 100) / 100);
}
