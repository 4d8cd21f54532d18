// Three of the tracks of the timeline as few SVG paths, whatever the number of steps.

import { setAttributes, setText, shape } from "./dom.js";
import { bytes, duration, roundUp, tick } from "./numbers.js";

const LEVELS = [0, 1, 2, 3, 4];
const PREFILL_AT_MOST = 4;
const PROMPT_BITS = 12;

/** A horizontal band of the chart with a label and values on its axis. */
class Track {
  constructor(svg, words, key, top, bottom) {
    Object.assign(this, { top, bottom, key, words });
    this.group = svg.appendChild(shape("g"));
    this.name = this.group.appendChild(shape("text", { class: "ft-track-name ft-track-label" }));
    this.unit = this.group.appendChild(shape("text", { class: "ft-track-label" }));
    this.high = this.group.appendChild(shape("text", { "text-anchor": "end" }));
    this.low = this.group.appendChild(shape("text", { "text-anchor": "end" }));
    this.lines = this.group.appendChild(shape("path", { class: "ft-grid-line" }));
  }

  path(className) {
    return this.group.appendChild(shape("path", { class: className, d: "" }));
  }

  text(className, anchor = "start") {
    return this.group.appendChild(shape("text", { class: className, "text-anchor": anchor }));
  }

  axis(chart, high, unit) {
    const { left, right, narrow } = chart;
    setText(this.name, this.words.say(`timeline.${this.key}`));
    setText(this.unit, unit);
    setAttributes(this.name, { x: 0, y: narrow ? this.top - 11 : this.top + 11 });
    const after = this.#width(this.name) + 6;
    setAttributes(this.unit, { x: narrow ? after : 0, y: narrow ? this.top - 11 : this.top + 25 });
    this.named = after + this.#width(this.unit);
    setText(this.high, high);
    setText(this.low, "0");
    setAttributes(this.high, { x: left - 7, y: this.top + 4 });
    setAttributes(this.low, { x: left - 7, y: this.bottom + 4 });
    setAttributes(this.lines, { d: `M${left} ${this.top}H${right}M${left} ${this.bottom}H${right}` });
  }

  /** Fill the bar of one column with the accent. */
  point(column) {
    setAttributes(this.now, { d: this.shapes?.get(column) ?? "" });
  }

  #width(text) {
    return text.getComputedTextLength?.() ?? 60;
  }

  y(part) {
    return this.bottom - Math.min(1, Math.max(0, part)) * (this.bottom - this.top);
  }
}

export class SurprisalTrack extends Track {
  constructor(svg, words) {
    super(svg, words, "surprisal", 52, 142);
    this.bars = LEVELS.map((level) => this.path(`ft-bar-s${level}`));
    this.now = this.path("ft-bar-now");
    this.cut = this.path("ft-bar-cut");
    this.dots = this.path("ft-dots");
    this.note = this.text("ft-track-note", "end");
    this.unknown = this.text("ft-track-note ft-ink-prefill");
  }

  /** `before` are the columns of the prompt, of which nothing may be known; `unknown` says so. */
  draw(chart, cols, before, unknown) {
    const known = before.filter((c) => c.bits !== null);
    const highest = (some) => Math.max(0, ...some.map((c) => Math.max(c.bits, c.entropy)));
    const top = Math.max(6, roundUp(Math.max(highest(cols), Math.min(PROMPT_BITS, highest(known)))));
    const paths = LEVELS.map(() => "");
    let [dots, cut] = ["", ""];
    this.shapes = new Map();
    const add = (c, i) => {
      if (c.bits === null) return;
      this.shapes.set(i, bar(chart, i, Math.min(this.y(c.bits / top), this.bottom - 1.5), this.bottom));
      paths[c.level] += this.shapes.get(i);
      if (c.bits > top) cut += `M${chart.x(i) - 1} ${this.top + 11}l${chart.step + 2}-4v3l-${chart.step + 2} 4z`;
      dots += `M${chart.middle(i)} ${this.y(c.entropy / top)}h0`;
    };
    before.forEach((c, i) => add(c, i - before.length));
    cols.forEach(add);
    this.bars.forEach((path, level) => setAttributes(path, { d: paths[level] }));
    setAttributes(this.cut, { d: cut });
    setAttributes(this.dots, { d: dots });
    this.axis(chart, tick(top), this.words.say("timeline.bits"));
    setText(this.note, this.words.say("timeline.dots"));
    setAttributes(this.note, { x: chart.right, y: this.bottom + 15 });
    const fits = chart.x(0) - chart.left > 96;
    setText(this.unknown, known.length || !fits ? "" : unknown);
    setAttributes(this.unknown, { x: chart.left + 4, y: this.bottom - 6 });
  }
}

export class TimeTrack extends Track {
  constructor(svg, words) {
    super(svg, words, "time", 184, 264);
    this.bars = this.path("ft-bar-time");
    this.now = this.path("ft-bar-now");
    this.prefill = this.path("ft-bar-prefill");
    this.cut = this.path("ft-bar-cut");
    this.note = this.text("ft-track-note ft-ink-prefill");
  }

  draw(chart, cols, prefill) {
    const most = Math.max(0, ...cols.map((c) => c.seconds ?? 0));
    const fits = !most || !prefill || prefill <= most * PREFILL_AT_MOST;
    const top = roundUp(1000 * Math.max(most, fits ? prefill ?? 0 : most * 2)) / 1000;
    const apart = prefill !== null;
    this.shapes = new Map(cols.map((c, i) => [i, c.seconds === null || (apart && !i) ? "" : bar(chart, i, this.y(c.seconds / top), this.bottom)]));
    setAttributes(this.bars, { d: [...this.shapes.values()].join("") });
    const y = this.y((prefill ?? 0) / top);
    const wide = Math.max(4, chart.x(0) - chart.left - 1);
    setAttributes(this.prefill, { d: prefill ? `M${chart.left} ${this.bottom}V${y}h${wide}V${this.bottom}z` : "" });
    const x = chart.left - 1;
    setAttributes(this.cut, { d: prefill && !fits ? `M${x} ${y + 9}l${wide + 2}-4v4l-${wide + 2} 4z` : "" });
    this.axis(chart, tick(top * 1000), this.words.say("timeline.ms"));
    const key = fits ? "timeline.prefill" : "timeline.prefill_cut";
    setText(this.note, prefill ? this.words.say(key, { time: duration(prefill) }) : "");
    const place = chart.narrow ? [Math.max(chart.left + 1, this.named + 14), this.top - 11] : [chart.left + 1, this.top - 6];
    setAttributes(this.note, { x: place[0], y: place[1] });
  }
}

export class MemoryTrack extends Track {
  constructor(svg, words) {
    super(svg, words, "memory", 306, 416);
    this.wrote = this.path("ft-area-prefill");
    this.area = this.path("ft-area-memory");
    this.line = this.path("ft-line-memory");
    this.jump = this.path("ft-line-prefill");
    this.note = this.text("ft-track-note ft-ink-prefill ft-on-area");
  }

  draw(chart, cols, prompt) {
    const top = Math.max(1, ...cols.map((c) => c.used ?? 0));
    const limit = niceBytes(top);
    let line = "";
    cols.forEach((c, i) => {
      if (c.used === null) return;
      line += `${line ? "L" : "M"}${chart.x(i)} ${this.y(c.used / limit)}H${chart.x(i + 1)}`;
    });
    const first = cols[0]?.used ?? null;
    setAttributes(this.line, { d: line });
    setAttributes(this.area, { d: line ? `${line}V${this.bottom}H${chart.x(0)}z` : "" });
    const block = first === null ? "" : `M${chart.left + 1} ${this.bottom}V${this.y(first / limit)}H${chart.x(0)}`;
    setAttributes(this.wrote, { d: block && `${block}V${this.bottom}z` });
    setAttributes(this.jump, { d: block });
    const [value, unit] = bytes(limit).split(" ");
    this.axis(chart, value, unit);
    const wrote = cols[0]?.predicted ? this.words.say("timeline.predicted") : this.words.many("timeline.wrote", prompt.n, prompt.text);
    setText(this.note, first === null ? "" : wrote);
    setAttributes(this.note, { x: chart.left + 8, y: this.bottom - 6 });
  }
}

/** A round number of bytes at or above `n`, in its own unit. */
function niceBytes(n) {
  const power = n >= 2 ** 30 ? 2 ** 30 : n >= 2 ** 20 ? 2 ** 20 : 2 ** 10;
  return roundUp(n / power) * power;
}

function bar(chart, i, top, bottom, least = 0.8) {
  const gap = chart.step > 6 ? 1 : chart.step > 3 ? 0.5 : 0;
  const width = Math.max(least, chart.step - 2 * gap);
  return `M${chart.x(i) + gap} ${bottom}V${top}h${width}V${bottom}z`;
}

