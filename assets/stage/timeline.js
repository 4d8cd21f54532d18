// The timeline card: surprisal, time and memory over the tokens, one x axis, one cursor.

import { make, region, setAttributes, setText, shape, watchWidth } from "./dom.js";
import { columns, room } from "./columns.js";
import { spoken } from "./marks.js";
import { count } from "./numbers.js";
import { timing } from "./run.js";
import { MemoryTrack, SurprisalTrack, TimeTrack } from "./tracks.js";
import { Sentence } from "./words.js";

const HEIGHT = 418;
const MOST_COLUMNS = 300;
const LEAST_COLUMN_PX = 2;

export class Timeline {
  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.width = 0;
    this.svg = shape("svg", { class: "ft-timeline", height: HEIGHT, role: "slider", tabindex: 0 });
    this.tracks = [SurprisalTrack, TimeTrack, MemoryTrack].map((Kind) => new Kind(this.svg, words));
    this.mark = this.svg.appendChild(shape("path", { class: "ft-cursor-line" }));
    this.svg.append(...this.tracks.flatMap(({ name, unit, note }) => [name, unit, note]));
    this.first = this.svg.appendChild(shape("text"));
    this.at = this.svg.appendChild(shape("text", { class: "ft-cursor-text", "text-anchor": "middle" }));
    this.last = this.svg.appendChild(shape("text", { "text-anchor": "end" }));
    this.caption = make("p", "ft-quiet");
    this.node = region(words.say("region.timeline"), "ft-card-timeline");
    const title = new Sentence(make("h2", "ft-title"), words, scene.glossary.term).show("timeline.title");
    this.frame = make("div", "ft-timeline-frame");
    this.frame.append(this.svg);
    this.node.append(title, this.frame, this.caption);
    this.#listen();
    this.reset();
    this.unwatch = watchWidth(this.frame, (width) => { this.width = width; this.drawn = ""; this.#paint(); });
  }

  reset() {
    this.drawn = "";
    this.view = null;
    this.caption.hidden = true;
    this.svg.classList.add("ft-blank");
  }

  paint(view) {
    this.view = view;
    this.#paint();
  }

  #paint() {
    const { run, lane, cursor } = this.view ?? {};
    if (!lane || !this.width) return;
    const key = `${lane.steps.length}/${lane.done}/${Boolean(run.prefilled)}`;
    if (key !== this.drawn) this.#draw(run, lane);
    this.drawn = key;
    this.#cursor(lane, cursor);
  }

  #draw(run, lane) {
    const { words } = this.scene;
    this.chart = layout(this.width, room(lane));
    const cols = columns(lane.steps, this.chart.each);
    this.svg.classList.toggle("ft-blank", !cols.length);
    setAttributes(this.svg, { width: this.width, viewBox: `0 0 ${this.width} ${HEIGHT}` });
    const [surprise, time, memory] = this.tracks;
    const n = run.promptTokens;
    surprise.draw(this.chart, cols);
    time.draw(this.chart, cols, timing(run, { steps: [] }).prefill);
    memory.draw(this.chart, cols, { n, text: count(n) });
    this.caption.hidden = this.chart.each === 1;
    setText(this.caption, words.say("timeline.together", { n: count(this.chart.each) }));
  }

  #cursor(lane, cursor) {
    const { words } = this.scene;
    const step = lane.steps[cursor];
    const n = lane.steps.length;
    const { chart } = this;
    const y = HEIGHT - 12;
    this.mark.style.display = step ? "" : "none";
    setText(this.first, n ? words.say("timeline.first") : "");
    setAttributes(this.first, { x: chart.left, y });
    setText(this.last, n > 1 ? count(n) : "");
    const end = chart.x(Math.ceil(n / chart.each));
    setAttributes(this.last, { x: end, y });
    setText(this.at, step ? count(cursor + 1) : "");
    if (!step) return;
    const x = chart.middle(Math.floor(cursor / chart.each));
    for (const track of this.tracks.slice(0, 2)) track.point(Math.floor(cursor / chart.each));
    setAttributes(this.mark, { d: `M${x} 14V${HEIGHT - 26}` });
    setAttributes(this.at, { x, y });
    this.first.style.opacity = x - chart.left < 70 ? 0 : 1;
    this.last.style.opacity = end - x < 34 ? 0 : 1;
    setAttributes(this.svg, {
      "aria-label": words.say("timeline.slider"), "aria-valuemin": 1, "aria-valuemax": n, "aria-valuenow": cursor + 1,
      "aria-valuetext": words.say("timeline.at", { n: count(cursor + 1), text: spoken(step.token) }),
    });
  }

  #listen() {
    let dragging = false;
    const seek = (event) => {
      if (!this.view?.lane || !this.chart) return;
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      const column = Math.floor((x - this.chart.left) / this.chart.step);
      this.scene.move(column * this.chart.each + Math.floor(this.chart.each / 2), {});
    };
    this.svg.addEventListener("pointerdown", (event) => {
      dragging = true;
      this.svg.setPointerCapture(event.pointerId);
      seek(event);
    });
    this.svg.addEventListener("pointermove", (event) => { if (dragging) seek(event); });
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => { dragging = false; });
    this.svg.addEventListener("keydown", (event) => this.scene.onKey(event, {}));
  }

  destroy() {
    this.unwatch();
  }
}

/** Where the columns lie: `each` steps a column, so that there are at most 300. */
function layout(width, steps) {
  const narrow = width < 460;
  const left = narrow ? 40 : 100;
  const right = width - 8;
  const most = Math.min(MOST_COLUMNS, Math.floor((right - left) / LEAST_COLUMN_PX));
  const each = Math.max(1, Math.ceil(steps / most));
  const step = (right - left) / Math.ceil(steps / each);
  return {
    left, right, narrow, each, step,
    x: (i) => round(left + i * step), middle: (i) => round(left + (i + 0.5) * step),
  };
}

const round = (x) => Math.round(x * 100) / 100;
