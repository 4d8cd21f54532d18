// Other settings at the step under the cursor: what would be left, and what the same draw would have taken.
//
// The record answers at once as far as its candidates go; the server then answers from the step's logits, and the
// panel says which. Over the whole run the steps that would have gone otherwise are listed.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { visible } from "./marks.js";
import { bytes, count, draw as drawn, duration, percent } from "./numbers.js";
import { wouldTake } from "./other_sampler.js";
import { readCandidate, readToken } from "./run.js";
import { describe, stageName } from "./settings.js";
import { looked } from "./slide.js";
import { Sentence } from "./words.js";

const SLIDERS = {
  temperature: [0, 2, 0.05, 1], top_k: [0, 200, 1, 0], top_p: [0, 1, 0.01, 1],
  min_p: [0, 1, 0.01, 0], typical_p: [0, 1, 0.01, 1], repetition_penalty: [1, 2, 0.05, 1],
};
const ROWS = 6;
const AT_ONCE_MS = 0;
const STEPS_SHOWN = 40;

export class WhatIf {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.settings = null;
    this.inputs = new Map(Object.keys(SLIDERS).map((name) => [name, this.#slider(name)]));
    this.back = button("ft-link", words.say("what_if.back"), () => this.#use(null));
    this.said = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.said.node.setAttribute("aria-live", "polite");
    this.rows = setAttributes(make("div", "ft-what-if-rows"), { role: "list" });
    this.source = make("p", "ft-quiet");
    this.over = button("ft-button", words.say("what_if.over"), () => this.#askRun());
    this.make = button("ft-button", words.say("what_if.make"), () => this.#makeRun());
    this.make.title = words.say("what_if.make_title");
    this.all = make("p", "ft-why");
    this.list = setAttributes(make("ol", "ft-what-if-list"), { "aria-label": words.say("what_if.list") });
    this.node = box("ft-what-if", box("ft-what-if-sliders", ...[...this.inputs.values()].map((one) => one.node)), this.back,
      this.said.node, this.rows, this.source, box("ft-what-if-go", this.over, this.make), this.all, this.list);
  }

  #slider(name) {
    const [min, max, step] = SLIDERS[name];
    const label = stageName(this.scene.words, name);
    const input = setAttributes(make("input", "ft-range"), { type: "range", min, max, step, "aria-label": this.scene.words.say("what_if.slider", { name: label }) });
    const value = make("b", "ft-number");
    input.addEventListener("input", () => this.#use({ ...this.settings, [name]: Number(input.value) }));
    return { input, value, node: box("ft-what-if-slider", make("span", "", label), input, value) };
  }

  show(view) {
    const { run, lane, cursor } = view;
    if (this.lane !== lane) Object.assign(this, { lane, settings: ownSettings(lane), runAsked: null });
    Object.assign(this, { view, run, cursor, step: lane.steps[cursor] });
    this.#paint();
  }

  /** Other settings, null: the run's own. */
  #use(settings) {
    this.settings = settings ?? ownSettings(this.lane);
    this.runAsked = null;
    this.#paint(AT_ONCE_MS);
  }

  #question(what, step) {
    const { settings } = this;
    const greedy = settings.temperature === 0;
    const given = { ...settings, strategy: greedy ? "greedy" : "sample" };
    return { what, run: this.run.id, lane: this.lane.index, step, settings: given, key: JSON.stringify(given) };
  }

  /** `patience`: how long this is to be wished before it is asked; a cursor that moves asks where it rests. */
  #paint(patience) {
    const { words, questions } = this.scene;
    const own = same(this.settings, ownSettings(this.lane));
    const question = this.#question("whatif", this.cursor);
    const possible = questions.possible && this.run.done && this.step.distribution !== "processed";
    if (possible && !own) questions.ask(question, patience);
    const answer = own ? null : questions.answer(question);
    this.#paintRun();
    const shown = [this.step, question.key, answer, this.run.done];
    if (shown.every((one, i) => one === this.shown?.[i])) return;
    this.shown = shown;
    this.node.dataset.answered = answer && !answer.waiting ? question.key : "";
    for (const [name, { input, value }] of this.inputs) this.#paintSlider(name, input, value);
    this.back.disabled = own;
    this.over.disabled = this.make.disabled = own || !possible;
    this.over.hidden = this.make.hidden = !questions.possible;
    const judged = own ? asRecorded(this.step) : fromAnswer(answer) ?? this.#fromRecord(question.settings);
    this.#say(judged, own);
    this.#fill(judged);
    setText(this.source, own ? words.say("what_if.own_source") : this.#sourceOf(answer));
  }

  #paintSlider(name, input, value) {
    const now = this.settings[name];
    const off = SLIDERS[name][3];
    input.value = String(now);
    const text = now === off && name !== "temperature" ? this.scene.words.say("what_if.off") : String(Number(now.toFixed(3)));
    setText(value, text);
    setAttributes(input, { "aria-valuetext": text });
  }

  /** What the recorded candidates alone tell: at once, and where nobody can be asked. */
  #fromRecord(settings) {
    const { step, lane, run, cursor } = this;
    const decoding = { ...lane.decoding, ...settings };
    const seen = looked({ ...run, started: run.started }, { ...lane, decoding, steps: lane.steps }, cursor);
    const found = wouldTake(step, decoding, step.draw, seen, run.model.vocabulary ?? 0);
    const by = new Map((step.candidates ?? []).map((wire) => [wire[0][0], readCandidate(wire)]));
    const rows = [...by.values()].map((c) => ({ ...c, then: found.rows.get(c.id)?.processed ?? null, removedBy: found.rows.get(c.id)?.removedBy ?? null }));
    const token = found.token === undefined ? null : by.get(found.token) ?? null;
    return { token, share: found.low ?? null, rows, kept: null, draw: step.draw ?? null, record: true };
  }

  #say({ token, share, kept, draw }, own) {
    const { words, figures } = { words: this.scene.words, figures: this.run.figures };
    const values = {
      token: token ? visible(token) : "", was: visible(this.step.token), share: percent(share, figures), draw: drawn(draw),
      kept: kept === null ? "" : words.many("candidates.kept", kept, count(kept)),
    };
    const which = own ? "own" : this.step.origin === "forced" ? "forced" : !token ? "unknown" : token.id === this.step.token.id ? "same" : draw === null ? "best" : "other";
    this.said.show(`what_if.${which}`, values);
  }

  /** The candidates that matter on either side: a thick bar as it would be, a thin one as it was. */
  #fill({ rows, token }) {
    const was = new Map((this.step.candidates ?? []).map((wire) => [wire[0][0], wire[2]]));
    const weight = (c) => Math.max(c.then ?? 0, was.get(c.id) ?? 0) + ([token?.id, this.step.token.id].includes(c.id) ? 2 : 0);
    const shown = [...rows].sort((a, b) => weight(b) - weight(a) || b.raw - a.raw).slice(0, ROWS).sort((a, b) => (b.then ?? 0) - (a.then ?? 0) || b.raw - a.raw);
    this.rows.replaceChildren(...shown.map((c) => this.#row(c, was.get(c.id) ?? null, c.id === token?.id)));
  }

  #row(c, was, chosen) {
    const { words } = this.scene;
    const { figures } = this.run;
    const row = setAttributes(make("div", `ft-row ft-what-if-row${chosen ? " ft-chosen" : ""}${c.removedBy ? " ft-removed" : ""}`), {
      role: "listitem", "data-id": c.id, "data-then": c.then ?? "", "data-was": was ?? "",
      "aria-label": words.say("what_if.row", { token: visible(c), then: percent(c.then, figures), was: percent(was, figures) }),
    });
    const [thick, thin] = [make("i", "ft-thick"), make("i", "ft-thin")];
    thick.style.transform = `scaleX(${c.then ?? 0})`;
    thin.style.transform = `scaleX(${was ?? 0})`;
    row.append(make("span", "ft-name", visible(c)), box("ft-bars", thick, thin), make("b", "ft-number", percent(c.then, figures)), make("span", "ft-number", percent(was, figures)));
    return row;
  }

  #sourceOf(answer) {
    const { words, questions } = this.scene;
    const record = words.say("what_if.record", { n: count((this.step.candidates ?? []).length) });
    if (!questions.possible) return `${record} ${words.say("what_if.alone")}`;
    if (!this.run.done) return `${record} ${words.say("what_if.later")}`;
    if (!answer || answer.waiting) return record;
    if (answer.error) return `${record} ${answer.error}`;
    return sourceText(words, answer.source, this.run);
  }

  #askRun() {
    this.runAsked = this.#question("whatif_run", 0);
    this.scene.questions.ask(this.runAsked, 0);
    this.#paint();
  }

  #paintRun() {
    const { words, questions } = this.scene;
    const answer = this.runAsked ? questions.answer(this.runAsked) : null;
    this.all.hidden = !this.runAsked;
    if (!this.runAsked || !answer || answer.waiting) setText(this.all, words.say("what_if.asking"));
    else if (answer.error) setText(this.all, answer.error);
    else setText(this.all, `${words.say(answer.count ? (answer.count === 1 ? "what_if.found_one" : "what_if.found") : "what_if.none", { n: count(answer.count), steps: count(answer.steps) })} ${sourceText(words, answer.source, this.run)}`);
    if (this.listed === answer) return;
    this.listed = answer;
    this.list.replaceChildren(...(answer?.others ?? []).slice(0, STEPS_SHOWN).map((other) => this.#other(other)));
    const more = (answer?.count ?? 0) - STEPS_SHOWN;
    if (more > 0) this.list.append(make("li", "ft-quiet", words.say("what_if.more", { n: count(more) })));
  }

  #other({ step, token, probability, sure }) {
    const { words } = this.scene;
    const [was, other] = [visible(this.lane.steps[step].token), visible(readToken(token))];
    const values = { n: count(step + 1), was, other, share: percent(probability, this.run.figures) };
    const press = button("ft-what-if-other", "", () => this.scene.move(step, {}));
    press.setAttribute("aria-label", words.say("what_if.other_name", values));
    press.append(make("span", "ft-quiet", values.n), make("s", "", was), make("span", "", "→"), make("b", "", other), make("span", "ft-quiet", values.share));
    if (!sure) press.append(make("span", "ft-quiet", words.say("what_if.unsure")));
    const item = make("li");
    item.append(press);
    return item;
  }

  #makeRun() {
    const request = this.run.started?.request ?? {};
    this.scene.send("use", { request, settings: { ...this.lane.decoding, ...this.#question("", 0).settings } });
  }
}

/** The sliders' values that are the lane's own. */
function ownSettings({ decoding, greedy }) {
  const own = Object.fromEntries(Object.entries(SLIDERS).map(([name, [, , , off]]) => [name, decoding[name] ?? off]));
  return greedy ? { ...own, temperature: 0 } : own;
}

const same = (a, b) => Object.keys(b).every((name) => a[name] === b[name]);

const withThen = (wire) => {
  const c = readCandidate(wire);
  return { ...c, then: c.processed };
};

function asRecorded(step) {
  return { token: step.token, share: step.processed_probability, kept: step.kept_count, draw: step.draw ?? null, rows: (step.candidates ?? []).map(withThen) };
}

function fromAnswer(answer) {
  if (!answer || answer.waiting || answer.error) return null;
  const { token, processed_probability: share, kept_count: kept, draw } = answer;
  return { token: token && readToken(token), share, kept, draw: draw ?? null, rows: (answer.candidates ?? []).map(withThen) };
}

/** “From the 1,024 most probable, kept …” or “… computed again: 250 positions in 0.4 s”; in 16 bits a warning. */
export function sourceText(words, source, run, computedKey = "what_if.computed") {
  const { kept, computed, reused, seconds, held_bytes: held, limit_bytes: limit } = source;
  const where = words.say(kept ? "what_if.kept" : computedKey, {
    computed: count(computed), reused: count(reused), seconds: duration(seconds), held: bytes(held), limit: bytes(limit),
  });
  return run.figures < 3 ? `${where} ${words.say("what_if.half")}` : where;
}
