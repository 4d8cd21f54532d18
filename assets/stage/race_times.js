// The step times of both sides as two tracks on one axis, and a tick for each step with equal tokens.

import { make, region, setAttributes, setText, shape, watchWidth } from "./dom.js";
import { count, duration, roundUp, significant, tick } from "./numbers.js";
import { decodeSeconds, prefillSeconds } from "./race.js";
import { Sentence } from "./words.js";

const HEIGHT = 286;
const TRACKS = [["cached", 26, 106], ["uncached", 138, 218]];
const TICKS_Y = 250;
const MOST_COLUMNS = 256;
const LEAST_COLUMN_PX = 2;
const CHECK_PX = 9;

export class RaceTimes {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.width = 0;
    this.svg = shape("svg", { class: "ft-timeline ft-race-times", height: HEIGHT, role: "img" });
    this.tracks = TRACKS.map(([which, top, bottom]) => new StepTrack(this.svg, words, which, top, bottom));
    this.rowName = this.svg.appendChild(shape("text", { class: "ft-track-name", y: TICKS_Y + 4 }));
    this.checks = this.svg.appendChild(shape("path", { class: "ft-race-checks" }));
    this.parting = this.svg.appendChild(shape("path", { class: "ft-bar-now" }));
    this.partingText = this.svg.appendChild(shape("text", { class: "ft-cursor-text ft-track-label", y: TICKS_Y + 4 }));
    this.ends = ["start", "end"].map((anchor) =>
      this.svg.appendChild(shape("text", { "text-anchor": anchor, y: HEIGHT - 6 })));
    this.finding = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.apart = make("p", "ft-quiet");
    this.node = region(words.say("race.times"), "ft-card-race-times");
    const frame = make("div");
    frame.append(this.svg);
    this.node.append(make("h2", "ft-title", words.say("race.times")), this.finding.node, frame, this.apart);
    this.unwatch = watchWidth(frame, (width) => { this.width = width; this.#draw(); });
  }

  reset() {
    this.race = null;
  }

  paint(race) {
    this.race = race;
    this.#say(race);
    this.#draw();
  }

  #say(race) {
    const { words } = this.scene;
    const compared = race.compared;
    const equal = race.ticks.filter((one) => one.equal).length;
    const differ = significant(Math.max(0, ...compared.map((one) => one.logit_difference)), 2);
    const values = { n: count(equal), m: count(compared.length), at: count((race.parted ?? 0) + 1), differ };
    if (!compared.length) this.finding.show("race.compared_none");
    else if (race.parted === null) this.finding.show(sameness(race), values);
    else this.finding.show("race.parted", values);
    const [withIt, without] = race.sides.map((run) => duration(prefillSeconds(run)));
    setText(this.apart, words.say("race.prefills", { with: withIt, without }));
    setAttributes(this.svg, {
      "aria-label": words.say("race.ticks", values), "data-equal": equal, "data-compared": compared.length,
      "data-parted": race.parted ?? "",
    });
  }

  #draw() {
    if (!this.race || !this.width) return;
    const { race } = this;
    const steps = Math.max(...race.sides.map((run) => run.steps));
    const room = Math.max(2, race.done ? steps : Math.max(steps, race.most));
    const chart = layout(this.width, room);
    setAttributes(this.svg, { width: this.width, viewBox: `0 0 ${this.width} ${HEIGHT}` });
    const columns = race.sides.map((run) => together(decodeSeconds(run), chart.each));
    const top = roundUp(1000 * Math.max(0.001, ...columns.flat())) / 1000;
    this.tracks.forEach((track, i) => track.draw(chart, columns[i], top));
    this.#ticks(chart);
    const [first, last] = this.ends;
    setText(first, this.scene.words.say("timeline.first"));
    setAttributes(first, { x: chart.left });
    setText(last, count(room));
    setAttributes(last, { x: chart.right });
  }

  #ticks(chart) {
    const { race } = this;
    setText(this.rowName, this.scene.words.say("race.same_token"));
    setAttributes(this.rowName, { x: 0, y: chart.narrow ? TICKS_Y - 12 : TICKS_Y + 4 });
    let path = "";
    for (const one of race.ticks) if (one.equal) path += mark(chart, one.step);
    setAttributes(this.checks, { d: path });
    const at = race.parted;
    const shown = at !== null && at < chart.room;
    setAttributes(this.parting, { d: shown ? `M${chart.x(at)} ${TICKS_Y - 8}h${Math.max(3, chart.step)}v16h-${Math.max(3, chart.step)}z` : "" });
    setText(this.partingText, shown ? this.scene.words.say("race.parts_at", { n: count(at + 1) }) : "");
    const right = shown && chart.x(at) > chart.right - 120;
    setAttributes(this.partingText, {
      x: shown ? chart.x(at) + (right ? -6 : chart.step + 6) : 0, "text-anchor": right ? "end" : "start",
    });
  }

  destroy() {
    this.unwatch();
  }
}

/** The step times of one side as bars; the scale is that of both. */
class StepTrack {
  constructor(svg, words, which, top, bottom) {
    Object.assign(this, { words, which, top, bottom });
    this.lines = svg.appendChild(shape("path", { class: "ft-grid-line" }));
    this.bars = svg.appendChild(shape("path", { class: `ft-race-bar-${which}` }));
    this.name = svg.appendChild(shape("text", { class: "ft-track-name ft-track-label" }));
    this.unit = svg.appendChild(shape("text", { class: "ft-track-label" }));
    this.high = svg.appendChild(shape("text", { "text-anchor": "end" }));
    this.low = svg.appendChild(shape("text", { "text-anchor": "end" }));
    this.latest = svg.appendChild(shape("text", { class: "ft-track-label ft-race-latest", "text-anchor": "end" }));
  }

  draw(chart, columns, limit) {
    const { left, right, narrow } = chart;
    const y = (seconds) => round(this.bottom - (Math.min(1, seconds / limit)) * (this.bottom - this.top));
    const gap = chart.step > 6 ? 1 : chart.step > 3 ? 0.5 : 0;
    const wide = round(Math.max(0.8, chart.step - 2 * gap));
    const first = chart.each === 1 ? 1 : 0;
    setAttributes(this.bars, {
      d: columns.map((seconds, i) => `M${round(chart.x((i + first) * chart.each) + gap)} ${this.bottom}V${y(seconds)}h${wide}V${this.bottom}z`).join(""),
    });
    setText(this.name, this.words.say(`race.${this.which}`));
    setText(this.unit, narrow ? "" : this.words.say("race.ms_a_step"));
    setText(this.high, tick(limit * 1000));
    setText(this.low, "0");
    setAttributes(this.name, { x: 0, y: narrow ? this.top - 10 : this.top + 11 });
    setAttributes(this.unit, { x: 0, y: this.top + 25 });
    setAttributes(this.high, { x: left - 7, y: this.top + 4 });
    setAttributes(this.low, { x: left - 7, y: this.bottom + 4 });
    setAttributes(this.lines, { d: `M${left} ${this.top}H${right}M${left} ${this.bottom}H${right}` });
    setText(this.latest, columns.length ? this.words.say("race.latest", { time: duration(columns.at(-1)) }) : "");
    setAttributes(this.latest, { x: right, y: this.top - 8 });
  }
}

function layout(width, room) {
  const narrow = width < 460;
  const left = narrow ? 44 : 152;
  const right = width - 8;
  const most = Math.min(MOST_COLUMNS, Math.floor((right - left) / LEAST_COLUMN_PX));
  const each = Math.max(1, Math.ceil(room / most));
  const step = (right - left) / Math.ceil(room / each);
  return { left, right, narrow, room, each, step, x: (i) => round(left + (i / each) * step) };
}

/** What no difference so far means: in 16-bit numbers it is luck, and said as what happened. */
function sameness(race) {
  if (!race.done) return "race.same_so_far";
  return race.sixteenBit ? "race.same_this_time" : "race.same";
}

/** Means of `each` values together. */
function together(values, each) {
  const out = [];
  for (let i = 0; i < values.length; i += each) {
    const part = values.slice(i, i + each);
    out.push(part.reduce((a, b) => a + b, 0) / part.length);
  }
  return out;
}

/** A check mark where there is room for one, else a line. */
function mark(chart, step) {
  const x = chart.x(step) + chart.step / chart.each / 2;
  if (chart.step < CHECK_PX) return `M${round(x)} ${TICKS_Y - 4}v8`;
  return `M${round(x - 3.5)} ${TICKS_Y}l2.5 3l4.5-6.5`;
}

const round = (x) => Math.round(x * 100) / 100;
