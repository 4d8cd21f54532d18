// The fork card: at the step where a lane leaves, the same logits under every lane's settings.

import { box, button, make, region, setAttributes, setText } from "./dom.js";
import { ranked } from "./choices.js";
import { forks, standing } from "./lanes.js";
import { visible } from "./marks.js";
import { count, percent } from "./numbers.js";
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
    this.shown = "";
    this.picker.replaceChildren();
    this.grid.replaceChildren();
    this.legend.hidden = true;
    this.why.clear();
  }

  paint(run) {
    const found = forks(run.lanes);
    const key = found.map(({ lane, step }) => `${lane.index}@${step}`).join() + run.done + this.picked;
    if (key === this.shown || !run.lanes.length) return;
    this.shown = key;
    this.legend.hidden = !found.length;
    if (!found.length) {
      this.grid.replaceChildren();
      return this.why.show("compare.fork_none");
    }
    const fork = found.find(({ lane }) => lane.index === this.picked) ?? found[0];
    this.picked = fork.lane.index;
    this.#pick(run, found, fork);
    this.#explain(run, fork);
    this.#compare(run, fork.step);
  }

  #pick(run, found, current) {
    const { words } = this.scene;
    this.picker.hidden = found.length < 2;
    this.picker.replaceChildren(...found.map((fork) => {
      const name = words.say("compare.fork_pick", { name: laneName(words, fork.lane), n: count(fork.step + 1) });
      const node = button("ft-toggle", name, () => {
        this.picked = fork.lane.index;
        this.paint(run);
        [...this.picker.children].find((child) => child.getAttribute("aria-pressed") === "true")?.focus();
      });
      node.setAttribute("aria-pressed", String(fork === current));
      return node;
    }));
  }

  #explain(run, { lane, step }) {
    const { words } = this.scene;
    const [reference] = run.lanes;
    const [a, b] = [reference.steps[step], lane.steps[step]];
    const names = { name: laneName(words, lane), reference: laneName(words, reference), n: count(step + 1) };
    if (!a || !b) return this.why.show("compare.fork_ends", names);
    const text = reference.steps.slice(0, step).map((s) => s.text).join("");
    const tail = text.length > BEFORE_CHARACTERS ? `…${text.slice(-BEFORE_CHARACTERS)}` : text;
    return this.why.show(tail ? "compare.fork_why" : "compare.fork_why_start", {
      ...names, before: tail, taken: visible(a.token), own: visible(b.token),
      raw: percent(Math.exp(b.raw_logprob), run.figures), rank: count(b.raw_rank),
      processed: percent(b.processed_probability, run.figures),
    });
  }

  #compare(run, step) {
    const { words } = this.scene;
    const { lanes } = run;
    const cells = [make("span", "ft-head", words.say("compare.candidate")),
      ...lanes.map((lane) => make("span", "ft-head", laneName(words, lane)))];
    const states = lanes.map((lane) => standing(lanes, lane, step));
    const tables = lanes.map((lane, i) => states[i] === "together" ? byId(lane.steps[step]) : null);
    rowsOf(lanes, states, step).forEach((row, nth) => {
      cells.push(make("span", "ft-name", visible(row)));
      lanes.forEach((lane, i) => {
        cells.push(states[i] === "together" ? this.#cell(run, lane, tables[i].get(row.id) ?? row, step)
          : make("span", "ft-quiet", nth ? "" : words.say(`compare.${states[i]}`)));
      });
    });
    this.grid.style.setProperty("--ft-lanes", String(lanes.length));
    this.grid.replaceChildren(...cells);
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

const byId = (step) => new Map(ranked(step).map((candidate) => [candidate.id, { ...candidate, of: step }]));

/** What is known of a candidate that a lane did not record: nothing, or that it had no chance. */
function unlisted(lane, step) {
  if (lane.greedy) return { processed: 0, removedBy: "greedy" };
  const kept = (step.candidates ?? []).filter((candidate) => candidate[2] > 0).length;
  return { processed: kept >= step.kept_count ? 0 : null, removedBy: null };
}

/** The candidates to list: the model's first ones, and whatever a lane chose there. */
function rowsOf(lanes, states, step) {
  const all = new Map();
  const chosen = new Set();
  lanes.forEach((lane, i) => {
    if (states[i] !== "together") return;
    chosen.add(lane.steps[step].token.id);
    for (const candidate of ranked(lane.steps[step])) if (!all.has(candidate.id)) all.set(candidate.id, candidate);
  });
  const sorted = [...all.values()].sort((a, b) => b.raw - a.raw || a.id - b.id);
  const rest = sorted.filter((c) => !chosen.has(c.id)).slice(0, Math.max(0, ROWS - chosen.size));
  return sorted.filter((c) => chosen.has(c.id) || rest.includes(c));
}
