// Chapter 5: one record sent twice, token by token and in one piece, at a speed that can be felt.

import { box, make, setText } from "../stage/dom.js";
import { Chips } from "../stage/chips.js";
import { duration, rate } from "../stage/numbers.js";
import { Ticker, actions, push, segmented } from "./choose.js";
import { Prose } from "./prose.js";
import { quiet } from "./tokens.js";

const SPEEDS = [5, 27, 100];
const TICK_MS = 40;

export class StreamPanel {
  source = "main";

  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.speed = "recorded";
    this.ticker = new Ticker();
    this.picker = make("div");
    this.start = push(words.say("c5.start"), () => this.#press(), "ln-main");
    this.clock = make("span", "ln-clock");
    this.meter = box("ft-meter ft-on", make("i"));
    this.sides = ["streamed", "whole"].map((name) => this.#side(name));
    this.node = box("", this.picker, box("ln-actions", this.start, this.clock), this.meter,
      box("ln-two", ...this.sides.map((side) => side.node)));
  }

  update(material) {
    const { run, facts } = material.main;
    if (this.run === run) return;
    this.#end();
    Object.assign(this, { run, facts });
    const { words } = this.scene;
    const options = [
      ["recorded", words.say("c5.recorded", { rate: rate(facts.decode_tokens_per_second) })],
      ...SPEEDS.map((n) => [n, words.say("c5.per_second", { n: String(n) })]),
    ];
    this.picker.replaceChildren(segmented(words.say("c5.speed"), options, this.speed, (speed) => { this.speed = speed; this.#end(); this.#show(this.#last); }));
    for (const side of this.sides) this.#write(side);
    this.#show(this.#last);
  }

  destroy() {
    this.ticker.stop();
  }

  #side(name) {
    const { words } = this.scene;
    const side = { name, chips: new Chips(make("div", "ln-running ln-answer")), finding: new Prose(this.scene, make("p", "ft-quiet")) };
    side.empty = make("p", "ln-empty", words.say("c5.waiting"));
    side.node = box("ln-box", make("h4", "ln-sub", words.say(`c5.${name}`)), side.finding.node, box("ln-box-text", side.chips.node, side.empty));
    return side;
  }

  #write(side) {
    side.chips.clear();
    this.run.lanes[0].steps.forEach((step, i) => {
      quiet(side.chips.push({ token: step.token, text: i ? step.text : step.text.trimStart() }).chip);
    });
  }

  /** When the token of each step is there: as it was, or at so many a second after the recorded first one. */
  get #due() {
    const steps = this.run.lanes[0].steps;
    if (this.speed === "recorded") return steps.map((step) => step.end_seconds);
    return steps.map((step, i) => steps[0].end_seconds + i / this.speed);
  }

  get #last() {
    return this.#due.at(-1);
  }

  #press() {
    if (this.ticker.on) return this.#end();
    const began = performance.now();
    const last = this.#last;
    this.ticker.start(TICK_MS, () => {
      const now = (performance.now() - began) / 1000;
      if (now >= last) this.#end();
      this.#show(Math.min(now, last));
    });
    this.#show(0);
    return undefined;
  }

  #end() {
    this.ticker.stop();
    setText(this.start, this.scene.words.say("c5.start"));
  }

  #show(now) {
    const { words } = this.scene;
    const due = this.#due;
    const last = due.at(-1);
    const counts = [due.filter((at) => at <= now).length, now >= last ? due.length : 0];
    this.sides.forEach((side, i) => {
      side.chips.items.forEach(({ chip }, k) => { chip.hidden = k >= counts[i]; });
      side.chips.node.hidden = counts[i] === 0;
      side.empty.hidden = counts[i] > 0;
      side.finding.say("c5.first", { time: duration(i ? last : due[0]) });
      side.node.dataset.first = String(i ? last : due[0]);
    });
    if (this.ticker.on) setText(this.start, words.say("c5.stop"));
    setText(this.clock, words.say("c5.clock", { time: duration(now), total: duration(last) }));
    this.meter.firstChild.style.transform = `scaleX(${now / last})`;
  }
}
