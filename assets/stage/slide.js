// Hold the draw and slide the temperature: the slices stretch under the needle, and what it would have hit is named.

import { box, make, setAttributes, setText } from "./dom.js";
import { at, known } from "./chain.js";
import { DrawStrip } from "./draw_strip.js";
import { chosenAt, stretches } from "./flips.js";
import { visible } from "./marks.js";
import { draw, percent } from "./numbers.js";
import { remote } from "./remote.js";
import { readToken } from "./run.js";
import { Sentence } from "./words.js";

const TOP = 2;
const FINE = 0.01;
const NAMED_FROM = 0.16;
const two = (T) => T.toFixed(2);

export class Slide {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.step = null;
    this.range = setAttributes(make("input", "ft-range"), { type: "range", min: 0, step: FINE, "aria-label": words.say("slide.name") });
    this.range.addEventListener("input", () => this.#move(Number(this.range.value)));
    this.value = make("b", "ft-slide-value");
    this.back = make("button", "ft-link", words.say("slide.back"));
    this.back.type = "button";
    this.back.addEventListener("click", () => this.#move(this.own));
    this.strip = new DrawStrip(scene);
    this.strip.value.hidden = true;
    this.bands = setAttributes(make("div", "ft-bands"), { role: "img" });
    this.now = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.now.node.setAttribute("aria-live", "polite");
    this.flips = make("p", "ft-why");
    this.exact = make("p", "ft-quiet");
    const line = box("ft-slide-line", make("span", "", words.say("slide.label")), this.value, this.back);
    this.held = box("ft-slide", line, this.range, this.bands, this.strip.node, this.now.node, this.flips, this.exact);
    this.none = make("p", "ft-why");
    this.node = box("", this.held, this.none);
  }

  show({ run, lane, cursor }) {
    const step = lane.steps[cursor];
    if (step === this.step) return;
    this.step = step;
    const drawn = step.draw !== null && step.draw !== undefined && (step.candidates ?? []).length > 0;
    this.held.hidden = !drawn;
    this.none.hidden = drawn;
    setText(this.none, this.scene.words.say(remote(step) && step.origin === "drawn" ? "slide.untold" : "slide.no_draw"));
    if (!drawn) return;
    const { words } = this.scene;
    this.figures = run.figures;
    this.own = lane.decoding.temperature ?? 1;
    this.what = known(step, lane.decoding, run.model.vocabulary, looked(run, lane, cursor));
    this.names = new Map(this.what.items.map((c) => [c.id, visible(readToken(c.token))]));
    this.top = Math.max(TOP, this.own);
    this.stretches = stretches(this.what, step.draw, this.top);
    this.range.max = String(this.top);
    this.strip.show(step);
    this.#bands();
    setText(this.flips, this.#sayFlips(words));
    setText(this.exact, words.say(this.stretches.slice(1).every((s) => s.sharp) ? "slide.exact" : "slide.near", { n: (step.candidates ?? []).length }));
    this.#move(this.own);
  }

  #move(T) {
    this.range.value = String(T);
    setText(this.value, two(T));
    this.back.disabled = Math.abs(T - this.own) < FINE / 2;
    this.range.setAttribute("aria-valuetext", `T ${two(T)}`);
    const own = this.back.disabled;
    const { parts, rest } = at(this.what, T);
    let edge = 0;
    const slices = parts.map((part) => ({ ...readToken(part.token), share: part.share, from: edge, to: (edge = Math.min(1, edge + part.share)) }));
    const { id, certain } = own ? { id: this.step.token.id, certain: true } : chosenAt(this.what, this.step.draw, T);
    if (own) this.strip.show(this.step);
    else this.strip.lay(slices, rest, id);
    const share = own ? this.step.processed_probability : parts.find((part) => part.id === id)?.share ?? rest;
    this.now.show(own ? "slide.own" : certain ? "slide.now" : "slide.now_near", {
      T: two(T), draw: draw(this.step.draw), token: this.#name(id), share: percent(share, certain ? this.figures : 2),
    });
    this.here.style.left = `${(T / this.top) * 100}%`;
  }

  #name(id) {
    if (id === this.step.token.id) return visible(this.step.token);
    return this.names.get(id) ?? this.scene.words.say("slide.another");
  }

  /** Which token each temperature would have chosen, as bands under the slider. */
  #bands() {
    this.here = make("i", "ft-band-here");
    this.bands.replaceChildren(...this.stretches.map((stretch) => {
      const width = (stretch.to - stretch.from) / this.top;
      const mine = this.#of(this.own) === stretch;
      const band = make("span", `ft-band${mine ? " ft-chosen" : ""}${stretch.id === null ? " ft-rest" : ""}`);
      band.style.width = `${width * 100}%`;
      band.title = this.#nameOf(stretch);
      if (width >= NAMED_FROM) band.textContent = this.#nameOf(stretch);
      return band;
    }), this.here);
    this.bands.setAttribute("aria-label", this.stretches.map((s) => `${this.#nameOf(s)} ${two(s.from)}–${two(s.to)}`).join(", "));
  }

  /** At the run's own temperature the record knows better than any bound. */
  #nameOf(stretch) {
    return stretch.id === null && this.#of(this.own) === stretch ? this.#name(this.step.token.id) : this.#name(stretch.id);
  }

  #of(T) {
    return this.stretches.findLast((stretch) => stretch.from <= T) ?? this.stretches[0];
  }

  #sayFlips(words) {
    const own = this.stretches.indexOf(this.#of(this.own));
    const [below, above] = [this.stretches[own - 1], this.stretches[own + 1]];
    const edge = (stretch) => (stretch.sharp ? two(stretch.from) : words.say("slide.about", { T: two(stretch.from) }));
    const said = [];
    if (above) said.push(words.say("slide.above", { token: this.#nameOf(above), T: edge(above) }));
    if (below) said.push(words.say("slide.below", { token: this.#nameOf(below), T: edge(this.stretches[own]) }));
    return said.length ? said.join(words.say("slide.join")) : words.say("slide.never", { T: two(this.top) });
  }
}

/** The ids that a repetition penalty looks at before the step at `cursor`. */
export function looked(run, lane, cursor) {
  if ((lane.decoding.repetition_penalty ?? 1) === 1) return new Set();
  const read = (run.started?.prompt ?? []).map(([id]) => id);
  const { parent } = run.started?.request ?? {};
  const prompt = lane.decoding.penalty_scope === "output" ? read.slice(read.length - (parent?.step ?? 0)) : read;
  return new Set([...prompt, ...lane.steps.slice(0, cursor).map((step) => step.token.id)]);
}
