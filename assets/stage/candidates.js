// The candidates card: the token under the cursor, why it is there, and what else could have been.

import { box, button, make, region, setText } from "./dom.js";
import { choices } from "./choices.js";
import { DrawStrip } from "./draw_strip.js";
import { Flow } from "./flow.js";
import { visible } from "./marks.js";
import { count, draw, percent, rate } from "./numbers.js";
import { provable } from "./provable.js";
import { Reading } from "./reading.js";
import { limits } from "./remote.js";
import { Rows } from "./rows.js";
import { surprisal } from "./run.js";
import { Taking } from "./taking.js";
import { Tools } from "./tools.js";
import { Sentence } from "./words.js";

const FEW = 10;

export class Candidates {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.few = true;
    this.title = make("h2", "ft-title");
    this.token = make("code", "ft-token-big");
    this.figure = provable(scene, "processed");
    this.why = new Sentence(make("p", "ft-why"), words, glossary.term, {
      raw: () => scene.prove("raw"), bits: () => scene.prove("surprisal"),
    });
    this.together = make("p", "ft-quiet ft-together");
    this.together.hidden = true;
    this.strip = new DrawStrip(scene);
    this.flow = new Flow(scene);
    this.tools = new Tools(scene);
    this.reading = null;
    this.taking = new Taking(scene);
    this.rows = new Rows(scene, this.taking);
    this.limits = make("p", "ft-quiet ft-server");
    this.more = button("ft-link", "", () => this.#toggle());
    const proof = button("ft-link", words.say("prove.all"), () => scene.prove("processed"));
    this.node = region(words.say("region.candidates"), "ft-card-candidates");
    this.node.dataset.waiting = words.say("candidates.waiting");
    this.node.append(
      this.title, box("ft-big", this.token, this.figure), this.why.node, this.together, this.strip.node,
      this.flow.node, this.tools.node, this.rows.node, this.taking.said, this.limits, box("ft-card-foot", this.more, proof),
    );
    this.reset();
  }

  reset() {
    this.shown = null;
    this.node.classList.add("ft-blank");
    setText(this.title, this.scene.words.say("region.candidates"));
  }

  paint({ run, lane, cursor, reading, steering }) {
    const inPrompt = reading !== null;
    this.node.classList.toggle("ft-at-prompt", inPrompt);
    if (this.reading) this.reading.node.hidden = !inPrompt;
    if (inPrompt) this.#read({ run, reading });
    else this.#step({ run, lane, cursor });
    this.taking.paint({ run, lane, cursor, steering });
  }

  /** A token of the prompt, which nobody chose. */
  #read(view) {
    this.shown = null;
    this.node.classList.remove("ft-blank", "ft-waiting");
    setText(this.title, this.scene.words.say("reading.title", { n: count(view.reading + 1) }));
    this.node.append((this.reading ??= new Reading(this.scene)).node);
    this.reading.show(view);
  }

  #step({ run, lane, cursor }) {
    const step = lane?.steps[cursor];
    this.node.classList.toggle("ft-waiting", !step && Boolean(run.started) && !run.done);
    if (!step) return;
    this.tools.show({ run, lane, cursor });
    this.#join(lane, cursor, run);
    if (this.shown === step && this.wasFew === this.few) return;
    this.shown = step;
    this.wasFew = this.few;
    this.view = { run, lane, cursor };
    this.node.classList.remove("ft-blank");
    const { words } = this.scene;
    setText(this.title, words.say("candidates.title", { n: count(cursor + 1) }));
    setText(this.token, visible(step.token));
    setText(this.figure, percent(step.processed_probability, run.figures));
    this.figure.title = `${words.say("candidates.figure")}. ${words.say("prove.open")}`;
    this.why.show(whyKey(step), whyValues(step, run, words));
    const said = limits(step, words);
    this.limits.hidden = !said.length;
    setText(this.limits, said.join(words.say("memory.join")));
    this.strip.show(step);
    this.flow.show(step, lane, run);
    const found = choices(step, run.model.vocabulary, this.few ? FEW : 1000);
    this.rows.show(found, step, lane, run.figures, Math.min(FEW, found.total));
    this.#offerMore(found.total);
  }

  /** A character of several tokens is as probable as all of its pieces together. */
  #join(lane, cursor, run) {
    const { words } = this.scene;
    const group = this.scene.groupOf?.(cursor) ?? null;
    this.together.hidden = group === null;
    if (group === null) return;
    const parts = group.members.map((i) => lane.steps[i]);
    const product = (of) => percent(parts.reduce((all, part) => all * of(part), 1), run.figures);
    setText(this.together, words.say("candidates.together", {
      text: group.whole ? group.text : "…", n: count(parts.length),
      raw: product((part) => Math.exp(part.raw_logprob)), processed: product((part) => part.processed_probability),
    }));
  }

  #offerMore(total) {
    this.more.hidden = total <= FEW;
    const key = this.few ? "candidates.more" : "candidates.fewer";
    setText(this.more, this.scene.words.say(key, { n: count(total) }));
  }

  #toggle() {
    this.few = !this.few;
    if (this.view) this.#step(this.view);
  }
}

/** The sentence that fits how the token was chosen. */
export function whyKey(step) {
  const known = ["drawn", "argmax", "forced", "draft", "beam"];
  if (step.origin === "drawn" && (step.draw ?? null) === null) return "why.server";
  return `why.${known.includes(step.origin) ? step.origin : "argmax"}`;
}

export function whyValues(step, run, words) {
  return {
    raw: percent(Math.exp(step.raw_logprob), run.figures),
    rank: count(step.raw_rank), vocabulary: run.model.vocabulary ? count(run.model.vocabulary) : "?",
    bits: rate(surprisal(step)), kept: words.many("candidates.kept", step.kept_count, count(step.kept_count)),
    draw: draw(step.draw),
  };
}
