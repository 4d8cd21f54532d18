// The way through the settings at one step: a row a stage, with what it left of its input and who fell out there.
//
// Counts, masses and who fell out are in the record. Which setting did nothing takes the chain run once
// more without it, on all logits: that is asked of the server and fills itself in.

import { box, make, setAttributes, setText } from "./dom.js";
import { visible } from "./marks.js";
import { count, percent } from "./numbers.js";
import { readCandidate } from "./run.js";
import { stageName, stageWithValue } from "./settings.js";

const FALLEN_SHOWN = 6;
const RESHAPING = ["bias", "repetition_penalty", "temperature"];
const WITHOUT_VALUE = ["greedy", "bias", "ban"];

export class Waterfall {
  constructor(scene) {
    this.scene = scene;
    this.said = make("p", "ft-why");
    this.list = setAttributes(make("ol", "ft-waterfall"), { "aria-label": scene.words.say("tools.waterfall") });
    this.note = make("p", "ft-quiet");
    this.node = box("", this.said, this.list, this.note);
  }

  show({ run, lane, cursor }) {
    const step = lane.steps[cursor];
    const { questions } = this.scene;
    const question = { what: "waterfall", run: run.id, lane: lane.index, step: cursor };
    if (run.done) questions.ask(question);
    const answer = questions.answer(question);
    if (this.step === step && this.answer === answer && this.ended === run.done) return;
    Object.assign(this, { step, answer, ended: run.done });
    const levels = levelsOf(step, answer, run.model.vocabulary);
    setText(this.said, this.#sentence(levels));
    this.list.replaceChildren(
      this.#begin(run.model.vocabulary), ...levels.map((level) => this.#stage(level, step, lane, run)), this.#end(step, run),
    );
    setText(this.note, this.#remark(answer, run));
  }

  /** “Top-k kept 94 %, top-p 90 % of that: 85 %.” */
  #sentence(levels) {
    const { words } = this.scene;
    const filters = levels.filter((level) => level.filters);
    if (!filters.length) return words.say("waterfall.none");
    const parts = filters.map(({ name, share }, i) => words.say(i ? "waterfall.then" : "waterfall.first", {
      stage: stageName(words, name), share: percent(share, 2),
    }));
    const mass = percent(filters.at(-1).mass, 2);
    const said = parts.join(words.say("waterfall.comma"));
    return words.say(filters.length > 1 ? "waterfall.all" : "waterfall.one", { said, mass });
  }

  #begin(vocabulary) {
    return this.#row(this.scene.words.say("candidates.raw"), count(vocabulary), 1, "");
  }

  #stage(level, step, lane, run) {
    const { words } = this.scene;
    const { name, kept, mass, share, filters, inert } = level;
    const title = WITHOUT_VALUE.includes(name) ? stageName(words, name) : stageWithValue(words, name, lane.decoding);
    const what = !filters ? words.say(`waterfall.${name}`, { n: count(level.penalised) })
      : words.say("waterfall.kept", { share: percent(share, 2), out: count(level.out) });
    const known = name !== "repetition_penalty" || level.penalised !== null;
    const row = this.#row(title, count(kept), mass, known ? what : "");
    row.classList.toggle("ft-inert", inert === true);
    if (inert) row.append(make("span", "ft-waterfall-inert", words.say("waterfall.inert")));
    const fallen = filters ? this.#fallen(level, step, run) : null;
    if (fallen) row.append(fallen);
    return row;
  }

  #end(step, run) {
    const { words } = this.scene;
    const row = this.#row(words.say("candidates.processed"), count(step.kept_count), 1, words.say("waterfall.scaled", {
      mass: percent(step.kept_mass, 2),
    }));
    row.classList.add("ft-waterfall-end");
    row.title = words.say("waterfall.end", { vocabulary: count(run.model.vocabulary) });
    return row;
  }

  #row(title, kept, mass, what) {
    const row = make("li", "ft-waterfall-row");
    const bar = make("i", "ft-waterfall-bar");
    bar.style.transform = `scaleX(${mass})`;
    row.append(make("b", "", title), make("span", "ft-number", kept), box("ft-waterfall-track", bar));
    if (what) row.append(make("span", "ft-waterfall-what", what));
    return row;
  }

  /** The recorded candidates that fell out at this stage, most probable first. */
  #fallen({ name, out }, step, run) {
    const gone = (step.candidates ?? []).map(readCandidate).filter((c) => c.removedBy === name);
    if (!gone.length) return null;
    gone.sort((a, b) => b.raw - a.raw || a.id - b.id);
    const line = make("span", "ft-fallen");
    for (const c of gone.slice(0, FALLEN_SHOWN)) {
      const chip = make("span", "ft-fallen-token", visible(c));
      chip.title = percent(c.raw, run.figures);
      line.append(chip);
    }
    const more = out - Math.min(gone.length, FALLEN_SHOWN);
    if (more > 0) line.append(make("span", "", this.scene.words.say("waterfall.more", { n: count(more) })));
    return line;
  }

  #remark(answer, run) {
    const { words, questions } = this.scene;
    if (!questions.possible) return words.say("waterfall.alone");
    if (!run.done) return words.say("waterfall.later");
    if (!answer || answer.waiting) return words.say("waterfall.asking");
    if (answer.error) return answer.error;
    return words.say("waterfall.source", { computed: count(answer.computed), reused: count(answer.reused) });
  }
}

/** The stages of a step with the share that each kept of its own input; null is unknown. */
function levelsOf(step, answer, vocabulary) {
  const told = new Map((answer?.waterfall?.stages ?? []).map((stage) => [stage.name, stage]));
  let [mass, kept] = [1, vocabulary ?? null];
  return (step.stages ?? []).map((stage) => {
    const share = mass > 0 ? Math.min(1, stage.kept_mass / mass) : 0;
    const filters = !RESHAPING.includes(stage.name);
    const out = kept === null ? null : kept - stage.kept_count;
    const removesNothing = filters && (out === 0 || share === 1);
    const level = {
      name: stage.name, kept: stage.kept_count, mass: stage.kept_mass, share, filters,
      out: out ?? told.get(stage.name)?.removed_count ?? null,
      inert: told.get(stage.name)?.inert ?? (removesNothing ? true : null),
      penalised: answer?.waterfall ? answer.waterfall.rows.filter((row) => row.penalised).length : null,
    };
    [mass, kept] = [stage.kept_mass, stage.kept_count];
    return level;
  });
}
