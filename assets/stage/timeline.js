// The timeline card: words, surprisal, time and memory over the prompt and the answer; one x axis, one cursor.

import { button, make, region, setAttributes, setText, shape, watchWidth } from "./dom.js";
import { columns, grouping, promptColumns, room } from "./columns.js";
import { spoken } from "./marks.js";
import { count } from "./numbers.js";
import { readToken, timing } from "./run.js";
import { TextTrack } from "./text_track.js";
import { MemoryTrack, SurprisalTrack, TimeTrack } from "./tracks.js";
import { Sentence } from "./words.js";

const HEIGHT = 448;
const MOST_COLUMNS = 300;
const LEAST_COLUMN_PX = 2;

export class Timeline {
  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.width = 0;
    this.svg = shape("svg", { class: "ft-timeline", height: HEIGHT, role: "slider", tabindex: 0 });
    this.tracks = [SurprisalTrack, TimeTrack, MemoryTrack].map((Kind) => new Kind(this.svg, words));
    this.edge = this.svg.appendChild(shape("path", { class: "ft-prompt-edge" }));
    this.mark = this.svg.appendChild(shape("path", { class: "ft-cursor-line" }));
    this.svg.append(...this.tracks.flatMap((track) => [track.name, track.unit, track.note, ...(track.unknown ? [track.unknown] : [])]));
    this.text = new TextTrack(this.svg, 24);
    this.before = this.svg.appendChild(shape("text", { class: "ft-ink-prefill" }));
    this.first = this.svg.appendChild(shape("text"));
    this.at = this.svg.appendChild(shape("text", { class: "ft-cursor-text", "text-anchor": "middle" }));
    this.last = this.svg.appendChild(shape("text", { "text-anchor": "end" }));
    this.caption = make("span", "ft-quiet");
    this.said = make("span", "ft-quiet");
    this.ask = button("ft-link", words.say("reading.ask"), () => this.scene.askPrompt());
    this.foot = make("div", "ft-timeline-foot");
    this.foot.append(this.ask, this.said, this.caption);
    this.node = region(words.say("region.timeline"), "ft-card-timeline");
    const title = new Sentence(make("h2", "ft-title"), words, scene.glossary.term).show("timeline.title");
    this.frame = make("div", "ft-timeline-frame");
    this.frame.append(this.svg);
    this.node.append(title, this.frame, this.foot);
    this.#listen();
    this.reset();
    this.unwatch = watchWidth(this.frame, (width) => { this.width = width; this.drawn = ""; this.#paint(); });
  }

  reset() {
    this.drawn = "";
    this.view = null;
    this.tokens = null;
    setText(this.caption, "");
    setText(this.said, "");
    this.ask.hidden = true;
    this.svg.classList.add("ft-blank");
  }

  paint(view) {
    this.view = view;
    this.#paint();
  }

  #paint() {
    const { run, lane } = this.view ?? {};
    if (!lane || !this.width) return;
    const key = `${lane.steps.length}/${lane.done}/${Boolean(run.prefilled)}/${Boolean(run.reading)}`;
    if (key !== this.drawn) this.#draw(run, lane);
    this.drawn = key;
    this.#cursor(run, lane);
    this.#offer(run);
  }

  #draw(run, lane) {
    const { words } = this.scene;
    const n = run.promptTokens;
    this.chart = layout(this.width, n, room(lane));
    const { each, promptEach } = this.chart;
    const cols = columns(lane.steps, each);
    const before = promptColumns(run.reading, n, promptEach);
    this.svg.classList.toggle("ft-blank", !cols.length);
    setAttributes(this.svg, { width: this.width, viewBox: `0 0 ${this.width} ${HEIGHT}` });
    const [surprise, time, memory] = this.tracks;
    surprise.draw(this.chart, cols, before, words.say("reading.unknown"));
    time.draw(this.chart, cols, timing(run, { steps: [] }).prefill);
    memory.draw(this.chart, cols, { n, text: count(n) });
    setAttributes(this.edge, { d: n ? `M${this.chart.x(0)} 36V${HEIGHT - 26}` : "" });
    const parts = [each > 1 ? words.say("timeline.together", { n: count(each) }) : "",
      promptEach > 1 ? words.say("reading.together", { n: count(promptEach) }) : ""];
    setText(this.caption, parts.filter(Boolean).join(words.say("memory.join")));
  }

  #cursor(run, lane) {
    const { words } = this.scene;
    const { cursor, reading } = this.view;
    const { chart } = this;
    const n = lane.steps.length;
    const inPrompt = reading !== null && reading !== undefined;
    const there = inPrompt || Boolean(lane.steps[cursor]);
    const y = HEIGHT - 12;
    this.mark.style.display = there ? "" : "none";
    const end = chart.x(Math.ceil(n / chart.each));
    const fits = chart.x(0) - chart.left > 60;
    this.#label(this.before, fits && run.promptTokens ? words.say("reading.prompt") : "", chart.left, y);
    this.#label(this.first, n ? words.say("timeline.first") : "", chart.x(0), y);
    this.#label(this.last, n > 1 ? count(n) : "", end, y);
    this.#label(this.at, there ? count((inPrompt ? reading : cursor) + 1) : "", 0, y);
    if (!there) return this.text.hide();
    const column = inPrompt ? Math.floor(reading / chart.promptEach) - chart.before : Math.floor(cursor / chart.each);
    const x = chart.middle(column);
    for (const track of this.tracks.slice(0, 2)) track.point(column);
    setAttributes(this.mark, { d: `M${x} 34V${HEIGHT - 26}` });
    setAttributes(this.at, { x });
    this.before.style.opacity = Math.abs(x - chart.left) < 60 ? 0 : 1;
    this.first.style.opacity = x > chart.x(0) - 14 && x - chart.x(0) < 70 ? 0 : 1;
    this.last.style.opacity = end - x < 34 ? 0 : 1;
    this.#words(run, lane, inPrompt ? reading : run.promptTokens + cursor);
    const token = inPrompt ? this.#token(run, lane, reading) : lane.steps[cursor].token;
    const key = inPrompt ? "reading.at" : "timeline.at";
    return setAttributes(this.svg, {
      "aria-label": words.say("timeline.slider"), "aria-valuemin": 1 - run.promptTokens, "aria-valuemax": n,
      "aria-valuenow": inPrompt ? reading - run.promptTokens + 1 : cursor + 1,
      "aria-valuetext": words.say(key, { n: count((inPrompt ? reading : cursor) + 1), text: spoken(token) }),
    });
  }

  #label(node, text, x, y) {
    setText(node, text);
    setAttributes(node, { x, y });
  }

  #words(run, lane, here) {
    const { chart } = this;
    const prompt = run.promptTokens;
    this.text.show({
      here, prompt, total: prompt + lane.steps.length, left: chart.left, right: chart.right,
      middle: (i) => chart.middle(i < prompt ? Math.floor(i / chart.promptEach) - chart.before : Math.floor((i - prompt) / chart.each)),
      tokenAt: (i) => this.#token(run, lane, i),
    });
  }

  /** Token `i` of prompt and answer together. */
  #token(run, lane, i) {
    const prompt = run.promptTokens;
    if (i >= prompt) return lane.steps[i - prompt].token;
    this.tokens ??= new Map();
    if (!this.tokens.has(i)) this.tokens.set(i, readToken(run.started?.prompt?.[i]));
    return this.tokens.get(i);
  }

  /** What the model expected of the prompt is asked for, or it is said why it cannot be. */
  #offer(run) {
    const { words, questions } = this.scene;
    const answer = questions.answer({ what: "prompt", run: run.id });
    const wanted = run.done && !run.reading && (run.started?.prompt?.length ?? 0) > 1;
    this.ask.hidden = !wanted || !questions.possible || answer !== null;
    const waiting = wanted && answer?.waiting ? words.say("reading.waiting") : "";
    const alone = wanted && !questions.possible ? words.say("reading.alone") : "";
    setText(this.said, wanted ? answer?.error ?? (waiting || alone) : "");
  }

  #listen() {
    let dragging = false;
    const seek = (event) => {
      if (!this.view?.lane || !this.chart) return;
      const { chart } = this;
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      const column = Math.floor((x - chart.x(0)) / chart.step);
      if (column >= 0) this.scene.move(column * chart.each + Math.floor(chart.each / 2), {});
      else this.scene.read((column + chart.before) * chart.promptEach + Math.floor(chart.promptEach / 2));
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

/** Where the columns lie: the prompt's `before` the answer's, at most 300 in all. */
function layout(width, prompt, steps) {
  const narrow = width < 460;
  const left = narrow ? 40 : 100;
  const right = width - 8;
  const most = Math.min(MOST_COLUMNS, Math.floor((right - left) / LEAST_COLUMN_PX));
  const { prompt: promptEach, each } = grouping(prompt, steps, most);
  const before = Math.max(1, Math.ceil(prompt / promptEach));
  const step = (right - left) / (before + Math.ceil(steps / each));
  const x0 = left + before * step;
  return {
    left, right, narrow, each, promptEach, before, step,
    x: (i) => round(x0 + i * step), middle: (i) => round(x0 + (i + 0.5) * step),
  };
}

const round = (x) => Math.round(x * 100) / 100;
