// Chapter 4: the causal mask over the run's own tokens. A row a token, a column a token it could look at; the
// prompt's rows come in one pass, each further one in a pass of its own.

import { box, make, setAttributes, setText, shape, watchWidth } from "../stage/dom.js";
import { spoken, visible } from "../stage/marks.js";
import { count, duration } from "../stage/numbers.js";
import { readToken } from "../stage/run.js";
import { push, actions, Ticker } from "./choose.js";
import { Prose } from "./prose.js";

const MOST = 18;
const MOST_NARROW = 10;
const NARROW = 560;
const LABEL = 92;
const TOP = 74;
const RIGHT = 44;
const CELL_MOST = 26;
const PLAY_MS = 500;
const LONGEST = 11;

export class MaskPanel {
  source = "main";

  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.ticker = new Ticker();
    this.svg = shape("svg", { class: "ln-mask", role: "img" });
    this.frame = box("ln-mask-frame", this.svg);
    this.slider = setAttributes(make("input", "ln-range"), { type: "range", min: 1, step: 1, "aria-label": words.say("c4.step") });
    this.slider.addEventListener("input", () => this.#go(Number(this.slider.value)));
    this.play = push(words.say("c3.play"), () => this.#play());
    this.finding = new Prose(scene, make("p", "ln-finding ln-two-lines"));
    this.finding.node.setAttribute("aria-live", "polite");
    this.cut = make("p", "ft-quiet");
    this.table = make("div");
    const keys = ["prefill", "decode", "masked"].map((name) => {
      const key = make("span", "ft-key");
      key.append(make("i", `ft-swatch ln-swatch-${name}`), words.say(`c4.key_${name}`));
      return key;
    });
    this.node = box("", box("ln-controls", this.slider, actions(this.play)), this.finding.node,
      box("ln-mask-grid", box("", this.frame, box("ft-keys ln-keys", ...keys), this.cut), this.table));
    this.unwatch = watchWidth(this.frame, (width) => { this.width = width; this.#draw(); });
  }

  update(material) {
    this.#lengths(material.lesson.pairs);
    const { run, facts } = material.main;
    if (this.run === run) return;
    this.run = run;
    this.facts = facts;
    const prompt = run.started.prompt.map(readToken);
    const answer = run.lanes[0].steps.map((step) => step.token);
    const most = window.innerWidth < NARROW ? MOST_NARROW : MOST;
    this.prompt = Math.min(prompt.length, most);
    this.tokens = [...prompt, ...answer.slice(0, -1)].slice(0, most);
    this.passes = this.tokens.length - this.prompt + 1;
    const all = run.promptTokens + run.steps - 1;
    setText(this.cut, this.tokens.length < all ? this.scene.words.say("c4.cut", { n: count(this.tokens.length) }) : "");
    setAttributes(this.slider, { max: this.passes });
    this.#go(Math.min(3, this.passes));
  }

  destroy() {
    this.ticker.stop();
    this.unwatch();
  }

  #play() {
    if (this.ticker.on) this.ticker.stop();
    else {
      this.#go(this.pass === this.passes ? 1 : this.pass);
      this.ticker.start(PLAY_MS, () => this.#go(this.pass + 1));
    }
    setText(this.play, this.scene.words.say(this.ticker.on ? "c3.pause" : "c3.play"));
  }

  #go(pass) {
    this.pass = Math.min(this.passes, Math.max(1, pass));
    if (this.pass === this.passes && this.ticker.on) {
      this.ticker.stop();
      setText(this.play, this.scene.words.say("c3.play"));
    }
    this.slider.value = String(this.pass);
    this.slider.setAttribute("aria-valuetext", this.scene.words.say("c4.passes", { n: count(this.pass), all: count(this.passes) }));
    this.node.dataset.pass = String(this.pass);
    this.#say();
    this.#draw();
  }

  #say() {
    const { facts, run } = this;
    if (this.pass === 1) {
      this.finding.say("c4.prefill", {
        n: count(facts.prompt_tokens), pairs: count(facts.prefill_pairs), time: duration(facts.prefill_seconds),
      });
      return;
    }
    const steps = run.lanes[0].steps;
    const step = steps[this.pass - 1];
    this.finding.say("c4.decode", {
      pass: count(this.pass), token: visible(steps[this.pass - 2].token), n: count(step.kv_tokens),
      time: duration(step.end_seconds - step.start_seconds),
    });
  }

  #draw() {
    if (!this.width || !this.tokens) return;
    const n = this.tokens.length;
    const cell = Math.max(9, Math.min(CELL_MOST, Math.floor((this.width - LABEL - RIGHT) / n)));
    const rows = this.prompt + this.pass - 1;
    setAttributes(this.svg, { width: LABEL + n * cell + RIGHT, height: TOP + n * cell + 2 });
    this.svg.setAttribute("aria-label", this.scene.words.say("c4.rows"));
    const parts = [
      shape("path", { class: "ln-cell-masked", d: cells(range(0, rows).map((i) => [i, i + 1, n]), cell, true) }),
      shape("path", { class: "ln-cell-prefill", d: cells(range(0, this.prompt).map((i) => [i, 0, i + 1]), cell) }),
      shape("path", { class: "ln-cell-decode", d: cells(range(this.prompt, rows).map((i) => [i, 0, i + 1]), cell) }),
      ...this.#now(rows, cell),
      ...this.tokens.flatMap((token, i) => this.#labels(token, i, i < rows, cell)),
    ];
    this.svg.replaceChildren(...parts);
  }

  /** The outline of what the latest pass computed. */
  #now(rows, cell) {
    const from = this.pass === 1 ? 0 : rows - 1;
    const d = `M${LABEL} ${TOP + from * cell}h${rows * cell}v${(rows - from) * cell}h${-rows * cell}z`;
    return [shape("path", { class: "ln-cell-now", d })];
  }

  #labels(token, i, there, cell) {
    const text = short(visible(token));
    const kind = there ? (i < this.prompt ? "ln-in-prompt" : "ln-in-answer") : "ln-to-come";
    const row = shape("text", { class: kind, x: LABEL - 8, y: TOP + (i + 0.5) * cell + 4, "text-anchor": "end" });
    const column = shape("text", {
      class: kind, transform: `translate(${LABEL + (i + 0.5) * cell + 3} ${TOP - 7}) rotate(-52)`,
    });
    for (const node of [row, column]) node.textContent = text;
    row.append(shape("title"));
    row.lastChild.textContent = spoken(token);
    return [row, column];
  }

  #lengths(pairs) {
    if (this.table.childElementCount) return;
    const { words } = this.scene;
    const table = make("table", "ln-table");
    const row = (kinds, texts, scopes) => {
      const tr = make("tr");
      tr.append(...texts.map((text, i) => Object.assign(make(kinds[i], "ft-number", text), scopes[i] ? { scope: scopes[i] } : {})));
      return tr;
    };
    table.append(row(["th", "th"], [words.say("c4.length"), words.say("c4.pairs")], ["col", "col"]),
      ...pairs.map((p) => row(["th", "td"], [count(p.n), count(p.pairs)], ["row"])));
    this.table.append(make("h4", "ln-sub", words.say("c4.lengths")), box("ln-scroll", table));
  }
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

/** Squares of rows [row, from, to); masked ones are small dots. */
function cells(spans, cell, dots = false) {
  const inset = dots ? cell / 2 - 1 : 1;
  const side = cell - 2 * inset;
  return spans.flatMap(([row, from, to]) => range(from, to).map((column) => (
    `M${LABEL + column * cell + inset} ${TOP + row * cell + inset}h${side}v${side}h${-side}z`
  ))).join("");
}
