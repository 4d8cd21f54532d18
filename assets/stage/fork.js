// The fork card: the same logits under every lane's settings, where a lane leaves or at any token that was pressed.

import { box, button, make, region, setAttributes, setText } from "./dom.js";
import { ranked } from "./choices.js";
import { forks, standing } from "./lanes.js";
import { visible } from "./marks.js";
import { count, draw, percent } from "./numbers.js";
import { wouldTake } from "./other_sampler.js";
import { laneName, stageName } from "./settings.js";
import { Sentence } from "./words.js";

const ROWS = 7;
const BEFORE_CHARACTERS = 48;

export class Fork {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.picker = make("div", "ft-picker");
    setAttributes(this.picker, { role: "group", "aria-label": words.say("compare.fork_picker") });
    this.why = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.grid = make("div", "ft-fork-grid");
    this.legend = make("p", "ft-quiet", words.say("compare.legend"));
    this.node = region(words.say("compare.fork_title"), "ft-card-fork");
    this.node.append(make("h2", "ft-title", words.say("compare.fork_title")), this.picker, this.why.node,
      box("ft-fork-scroll", this.grid), this.legend);
    this.reset();
  }

  reset() {
    this.picked = null;
    this.looked = null;
    this.shown = "";
    this.picker.replaceChildren();
    this.grid.replaceChildren();
    this.legend.hidden = true;
    this.why.clear();
  }

  /** Show the distributions at `step` of `lane`, whether or not anything parts there. */
  look(run, lane, step) {
    this.looked = { lane: lane.index, step: Math.min(Math.max(0, step), lane.steps.length - 1) };
    this.paint(run, this.reference);
  }

  paint(run, reference) {
    if (!reference) return;
    if (reference !== this.reference) Object.assign(this, { reference, picked: null, looked: null });
    const found = forks(run.lanes, reference);
    const { looked } = this;
    const fork = found.find(({ lane }) => lane.index === this.picked) ?? found[0] ?? null;
    const anchor = looked ? run.lanes[looked.lane] : reference;
    const step = looked?.step ?? fork?.step ?? 0;
    const key = [...found.map(({ lane, step: at }) => `${lane.index}@${at}`), run.done, reference.index, fork?.lane.index,
      looked?.lane, step, anchor.steps.length > step + 1, run.lanes.filter((lane) => lane.steps[step]).length].join();
    if (key === this.shown) return;
    this.shown = key;
    this.picked = fork?.lane.index ?? null;
    this.#pick(run, found, looked ? null : fork, anchor, step);
    this.legend.hidden = !run.lanes.some((lane) => lane.steps[step]);
    if (looked) this.#same(run, anchor, step);
    else if (fork) this.#explain(run, fork);
    else this.why.show("compare.fork_none");
    this.#compare(run, anchor, step);
  }

  /** The forks, and the way along the tokens of the lane that is looked at. */
  #pick(run, found, current, anchor, step) {
    const { words } = this.scene;
    const toggles = found.map((fork) => {
      const name = words.say("compare.fork_pick", { name: laneName(words, fork.lane), n: count(fork.step + 1) });
      const node = button("ft-toggle", name, () => {
        Object.assign(this, { picked: fork.lane.index, looked: null });
        this.paint(run, this.reference);
        this.#focus("[aria-pressed='true']");
      });
      node.setAttribute("aria-pressed", String(fork === current));
      return node;
    });
    const along = [["earlier", -1, "‹"], ["later", 1, "›"]].map(([name, by, sign]) => {
      const node = button(`ft-toggle ft-along-${name}`, sign, () => {
        this.look(run, anchor, step + by);
        this.#focus(`.ft-along-${name}`);
      });
      node.setAttribute("aria-label", words.say(`compare.${name}`));
      node.disabled = !anchor.steps[step + by];
      return node;
    });
    const place = make("span", "ft-quiet", words.say("compare.fork_pick", { name: laneName(words, anchor), n: count(step + 1) }));
    this.picker.hidden = !anchor.steps.length;
    this.picker.replaceChildren(...toggles, box("ft-along", along[0], place, along[1]));
  }

  #focus(selector) {
    this.picker.querySelector(selector)?.focus();
  }

  /** Who still stands on the same logits, and what they took. */
  #same(run, anchor, step) {
    const { words } = this.scene;
    const here = run.lanes.filter((lane) => standing(anchor, lane, step) === "together");
    const taken = new Set(here.map((lane) => lane.steps[step].token.id));
    this.why.show(here.length < 2 ? "compare.look_alone" : taken.size < 2 ? "compare.look_same" : "compare.look_parted", {
      name: laneName(words, anchor), n: count(step + 1), runs: count(here.length), before: this.#before(anchor, step),
      taken: visible(anchor.steps[step].token),
    });
  }

  #before(lane, step) {
    const text = lane.steps.slice(Math.max(0, step - BEFORE_CHARACTERS), step).map((s) => s.text).join("");
    return text.length > BEFORE_CHARACTERS ? `…${text.slice(-BEFORE_CHARACTERS)}` : text;
  }

  #explain(run, { lane, step }) {
    const { words } = this.scene;
    const { reference } = this;
    const [a, b] = [reference.steps[step], lane.steps[step]];
    const names = { name: laneName(words, lane), reference: laneName(words, reference), n: count(step + 1) };
    if (!a || !b) return this.why.show("compare.fork_ends", names);
    const tail = this.#before(reference, step);
    return this.why.show(tail ? "compare.fork_why" : "compare.fork_why_start", {
      ...names, before: tail, taken: visible(a.token), own: visible(b.token),
      raw: percent(Math.exp(b.raw_logprob), run.figures), rank: count(b.raw_rank),
      processed: percent(b.processed_probability, run.figures),
    });
  }

  #compare(run, anchor, step) {
    const { words } = this.scene;
    const { lanes } = run;
    const states = lanes.map((lane) => standing(anchor, lane, step));
    const tables = lanes.map((lane, i) => states[i] === "together" ? byId(lane.steps[step]) : null);
    const others = lanes.map((lane, i) => states[i] === "together" || !anchor.steps[step] ? null : this.#other(run, lane, anchor, step));
    const seen = lanes.map((lane) => penalised(run, lane, anchor, step));
    const cells = [make("span", "ft-head", words.say("compare.candidate")),
      ...lanes.map((lane, i) => this.#head(lane, states[i] === "together" ? step : null))];
    cells.push(make("span", "ft-quiet", words.say("compare.how")),
      ...lanes.map((lane, i) => make("span", "ft-quiet", states[i] === "together" ? this.#how(lane, lane.steps[step]) : this.#would(run, lane, anchor.steps[step], states[i], others[i], step))));
    rowsOf(lanes, states, step, others.map((other) => other?.token)).forEach((row) => {
      cells.push(make("span", "ft-name", visible(row)));
      lanes.forEach((lane, i) => {
        const cell = states[i] === "together" ? this.#cell(run, lane, tables[i].get(row.id) ?? row, step) : this.#imagined(run, lane, row, others[i]);
        if (seen[i].has(row.id) && cell.dataset.id) this.#penalise(cell);
        cells.push(cell);
      });
    });
    this.grid.style.setProperty("--ft-lanes", String(lanes.length));
    this.grid.replaceChildren(...cells);
  }

  /** The lane's name, and where it stands here a way to the proof of its numbers. */
  #head(lane, step) {
    const { words } = this.scene;
    const name = make("span", "ft-head", laneName(words, lane));
    if (step === null || !this.scene.proveLane) return name;
    const prove = button("ft-link", words.say("compare.prove_it"), () => this.scene.proveLane(lane, step));
    prove.setAttribute("aria-label", words.say("compare.prove", { name: laneName(words, lane), n: count(step + 1) }));
    name.append(" ", prove);
    return name;
  }

  /** What a lane that is elsewhere by now would take from these logits, under its own settings and its own draw. */
  #other(run, lane, anchor, step) {
    const own = lane.steps[step]?.draw ?? null;
    return wouldTake(anchor.steps[step], lane.decoding, lane.greedy ? null : own, penalised(run, lane, anchor, step), run.model.vocabulary ?? 0);
  }

  #would(run, lane, at, state, other, step) {
    const { words } = this.scene;
    if (!other) return words.say(`compare.${state}`);
    const values = { gone: words.say(`compare.${state}`), draw: draw(lane.steps[step]?.draw), listed: count((at.candidates ?? []).length) };
    if (other.unknown) return words.say(`compare.would_${other.unknown}`, values);
    const token = ranked(at).find(({ id }) => id === other.token);
    const narrow = percent(other.low, 2) === percent(other.high, 2);
    const p = narrow ? percent((other.low + other.high) / 2, 2) : words.say("compare.between", { low: percent(other.low, 2), high: percent(other.high, 2) });
    return words.say(lane.greedy ? "compare.would_greedy" : "compare.would_draw", { ...values, token: token ? visible(token) : String(other.token), p });
  }

  /** A row of a lane that is elsewhere: the same logits, its settings. */
  #imagined(run, lane, row, other) {
    const found = other?.rows.get(row.id);
    if (!found) return make("span");
    const node = this.#bars(run, lane, { ...row, ...found }, other.token === row.id);
    node.classList.add("ft-imagined");
    node.dataset.imagined = "1";
    return node;
  }

  /** The repetition penalty has changed this candidate's score. */
  #penalise(cell) {
    const label = this.scene.words.say("compare.penalised");
    cell.dataset.penalised = "1";
    cell.querySelector(".ft-bars").append(make("i", "ft-tag ft-penalty", label));
    cell.setAttribute("aria-label", `${cell.getAttribute("aria-label")}, ${label}`);
  }

  /** How the lane came to its token here: what its settings left, the draw, and the token. */
  #how(lane, step) {
    const { words } = this.scene;
    const values = { kept: count(step.kept_count), mass: percent(step.kept_mass), draw: draw(step.draw), token: visible(step.token) };
    if (lane.greedy || step.origin === "argmax") return words.say("compare.how_greedy", values);
    return words.say(step.draw === null ? "compare.how_undrawn" : "compare.how_drawn", values);
  }

  /** `row` is the candidate under this lane, or another lane's where this one did not record it. */
  #cell(run, lane, row, step) {
    const at = lane.steps[step];
    const candidate = row.of === at ? row : { ...row, ...unlisted(lane, at) };
    return this.#bars(run, lane, candidate, at.token.id === row.id);
  }

  #bars(run, lane, candidate, chosen) {
    const { words } = this.scene;
    const node = make("div", "ft-fork-cell");
    const bars = make("span", "ft-bars");
    const [thick, thin] = [make("i", "ft-thick"), make("i", "ft-thin")];
    thick.style.transform = `scaleX(${candidate.processed ?? 0})`;
    if (candidate.processed === null) node.title = words.say("compare.unlisted");
    thin.style.transform = `scaleX(${candidate.raw})`;
    bars.append(thick, thin);
    if (candidate.removedBy) bars.append(make("i", "ft-tag", stageName(words, candidate.removedBy)));
    node.classList.toggle("ft-chosen", chosen);
    node.classList.toggle("ft-removed", Boolean(candidate.removedBy));
    const values = {
      lane: laneName(words, lane), token: visible(candidate), raw: percent(candidate.raw, run.figures),
      processed: percent(candidate.processed, run.figures), stage: stageName(words, candidate.removedBy ?? ""),
    };
    const label = words.say(candidate.removedBy ? "compare.cell_removed" : "compare.cell", values);
    setAttributes(node, {
      role: "img", "aria-label": label, "data-id": candidate.id, "data-lane": lane.index, "data-raw": candidate.raw,
      "data-processed": candidate.processed ?? "", "data-removed": candidate.removedBy ?? "",
    });
    const numbers = box("ft-fork-numbers", make("b", "", values.processed), setText(make("span"), values.raw));
    node.append(bars, numbers);
    return node;
  }
}

const NONE = new Set();

/** The ids whose scores the lane's penalty changes at `step` of `anchor`: those that stand before it. */
function penalised(run, { decoding }, anchor, step) {
  if ((decoding.repetition_penalty ?? 1) === 1) return NONE;
  const prompt = decoding.penalty_scope === "output" ? [] : (run.started?.prompt ?? []).map(([id]) => id);
  return new Set([...prompt, ...anchor.steps.slice(0, step).map(({ token }) => token.id)]);
}

const byId = (step) => new Map(ranked(step).map((candidate) => [candidate.id, { ...candidate, of: step }]));

/** What is known of a candidate that a lane did not record: nothing, or that it had no chance. */
function unlisted(lane, step) {
  if (lane.greedy) return { processed: 0, removedBy: "greedy" };
  const kept = (step.candidates ?? []).filter((candidate) => candidate[2] > 0).length;
  return { processed: kept >= step.kept_count ? 0 : null, removedBy: null };
}

/** The candidates to list: the model's first ones, and whatever a lane chose there, or would. */
function rowsOf(lanes, states, step, others) {
  const all = new Map();
  const chosen = new Set(others.filter((id) => id !== undefined));
  lanes.forEach((lane, i) => {
    if (states[i] !== "together") return;
    chosen.add(lane.steps[step].token.id);
    for (const candidate of ranked(lane.steps[step])) if (!all.has(candidate.id)) all.set(candidate.id, candidate);
  });
  const sorted = [...all.values()].sort((a, b) => b.raw - a.raw || a.id - b.id);
  const rest = sorted.filter((c) => !chosen.has(c.id)).slice(0, Math.max(0, ROWS - chosen.size));
  return sorted.filter((c) => chosen.has(c.id) || rest.includes(c));
}
