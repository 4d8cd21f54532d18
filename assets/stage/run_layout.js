// The Playground: answer and timeline in the middle, candidates and memory at the right.

import { Answer } from "./answer.js";
import { Banner } from "./banner.js";
import { Branches } from "./branches.js";
import { Candidates } from "./candidates.js";
import { jump } from "./chips.js";
import { box, make, setText } from "./dom.js";
import { Herald } from "./herald.js";
import { LoopMarks } from "./loop_marks.js";
import { Memory } from "./memory.js";
import { Prove } from "./prove.js";
import { Questions } from "./questions.js";
import { surprisal } from "./run.js";
import { describe } from "./settings.js";
import { Sheet } from "./sheet.js";
import { Timeline } from "./timeline.js";
import { Tip } from "./tip.js";
import { Tour } from "./tour.js";
import { Transport } from "./transport.js";

export class RunLayout {
  constructor(scene, layer, root) {
    Object.assign(this, { scene, cursor: -1, reading: null, following: true });
    Object.assign(scene, {
      move: (to, options) => this.move(to, options),
      chipOf: (step) => this.answer.chipOf(step),
      groupOf: (step) => this.answer.chips.items[step]?.group ?? null,
      moveBy: (by) => this.#moveBy(by, {}),
      read: (place) => this.read(place),
      askPrompt: () => this.#askPrompt(),
      onKey: (event, options) => this.#onKey(event, options),
      listenToTokens: (node) => this.#listen(node),
      prove: (key) => this.prove.open(key),
    });
    this.questions = new Questions(scene.alone ? null : scene.send, () => this.paint(scene.state()));
    scene.questions = this.questions;
    this.prove = new Prove(scene, layer);
    this.herald = new Herald();
    this.tip = new Tip(scene.words, layer);
    this.banner = new Banner(scene);
    this.answer = new Answer(scene);
    this.settings = make("span", "ft-quiet ft-settings");
    this.answer.node.prepend(box("ft-status", this.banner.progress, this.banner.label, this.settings));
    this.loops = new LoopMarks(scene);
    this.answer.chips.node.after(this.loops.node);
    this.transport = new Transport(scene);
    this.answer.node.append(this.transport.node);
    this.timeline = new Timeline(scene);
    this.branches = new Branches(scene);
    this.candidates = new Candidates(scene);
    this.memory = new Memory(scene);
    this.sheet = new Sheet(scene, layer);
    this.node = box("ft-run", box("ft-columns",
      box("ft-column", this.answer.node, this.branches.node, this.timeline.node),
      box("ft-column ft-column-side", this.candidates.node, this.memory.node)), this.herald.node);
    this.node.addEventListener("keydown", (event) => { if (!event.defaultPrevented) this.transport.onKey(event); });
    this.tour = new Tour(scene.words, {
      token: () => this.answer.chips.node,
      bars: () => this.candidates.rows.node, draw: () => this.candidates.strip.node,
      time: () => this.timeline.node, memory: () => this.memory.node,
    }, layer, root);
  }

  reset() {
    this.cursor = -1;
    this.reading = null;
    this.following = true;
    this.questions.reset();
    for (const card of [...this.#cards(), this.loops, this.transport, this.branches]) card.reset();
    this.sheet.close();
    this.prove.close();
    this.herald.reset();
    this.tip.hide();
    this.tour.end();
  }

  /** Paint the state; returns how many steps are in the page. */
  paint(state) {
    const lane = state.run.lanes[0] ?? null;
    this.#follow(state, lane);
    this.view = { ...state, lane, cursor: this.reading === null ? this.cursor : -1, reading: this.reading };
    this.banner.paint(this.view);
    setText(this.settings, lane ? describe(this.scene.words, lane) : "");
    const painted = this.answer.paint(this.view);
    this.loops.paint(this.view);
    for (const card of [this.memory, this.timeline]) card.paint(this.view);
    const then = lane ? { ...this.view, lane: lane.at(this.cursor) } : this.view;
    for (const card of [this.candidates, this.sheet, this.prove]) card.paint(then);
    this.transport.paint(this.view);
    this.branches.paint(this.view);
    if (lane && state.label !== "recorded") this.#tell(lane);
    if (state.label === "recorded" && lane?.done && painted === lane.steps.length) this.tour.offer();
    return painted;
  }

  /** Steps that this layout shows. */
  steps(run) {
    return run.lanes[0]?.steps.length ?? 0;
  }

  move(to, { focus = false }) {
    const n = this.view?.lane?.steps.length ?? 0;
    if (!n) return;
    this.cursor = Math.min(n - 1, Math.max(0, to));
    this.reading = null;
    this.following = false;
    this.paint(this.scene.state());
    if (focus) this.answer.chipOf(this.cursor)?.focus({ preventScroll: false });
  }

  /** Put the cursor on a token of the prompt: there is something to see of it once the answer has begun. */
  read(place) {
    const { lane, run } = this.view ?? {};
    if (!lane?.steps.length || !run.promptTokens) return;
    this.reading = Math.min(run.promptTokens - 1, Math.max(0, place));
    this.following = false;
    this.paint(this.scene.state());
  }

  /** Prompt and answer are one line of tokens for the arrow keys. */
  #moveBy(by, options) {
    const prompt = this.view?.run.promptTokens ?? 0;
    const to = (this.reading === null ? this.cursor : this.reading - prompt) + by;
    if (to < 0 && prompt && !options.focus) this.read(prompt + to);
    else this.move(to, options);
  }

  #askPrompt() {
    const { run } = this.view;
    this.questions.ask({ what: "prompt", run: run.id });
  }

  #tell(lane) {
    const end = lane.done ? this.scene.words.say(`finish.${lane.reason}`, { stop: lane.finished?.stop_string ?? "", n: lane.steps.length }) : "";
    this.herald.tell(() => lane.finished?.text ?? lane.steps.map((step) => step.text).join(""), end);
  }

  /** An answer of the server to what was asked about a step. */
  hear(answer) {
    this.questions.hear(answer);
  }

  destroy() {
    this.questions.reset();
    this.transport.reset();
    this.prove.destroy();
    this.timeline.destroy();
    this.memory.wall.destroy();
    this.sheet.destroy();
    this.tour.destroy();
  }

  /** While tokens arrive the cursor stays on the newest, until somebody moves it. */
  #follow({ run, label }, lane) {
    if (!this.following || !lane?.steps.length) return;
    const recorded = label === "recorded" || (this.cursor < 0 && run.done);
    if (recorded && run.done) {
      this.cursor = mostTelling(lane.steps);
      this.following = false;
    } else this.cursor = lane.steps.length - 1;
  }

  #cards() {
    return [this.answer, this.candidates, this.memory, this.timeline];
  }

  #listen(node) {
    const indexOf = (event) => {
      const chip = event.target.closest?.(".ft-token[data-i]");
      return chip && node.contains(chip) ? Number(chip.dataset.i) : null;
    };
    this.tip.watch(node, (chip) => {
      const step = this.view?.lane?.steps[Number(chip.dataset.i)];
      return step ? { step, figures: this.view.run.figures } : null;
    });
    node.addEventListener("click", (event) => {
      const i = indexOf(event);
      if (i === null || String(window.getSelection())) return;
      this.sheet.open(this.answer.chipOf(i));
      this.move(i, {});
    });
    node.addEventListener("focusin", (event) => {
      const i = indexOf(event);
      if (i !== null && i !== this.cursor) this.move(i, {});
    });
    node.addEventListener("keydown", (event) => this.#onKey(event, { focus: true }));
  }

  #onKey(event, options) {
    if (event.ctrlKey || event.metaKey || event.altKey) return null;
    const n = this.view?.lane?.steps.length ?? 0;
    const by = jump(event, options.focus ? this.answer.chips.node : null);
    const to = event.key === "Home" ? 0 : event.key === "End" ? n - 1 : null;
    if (!by && to === null && event.key !== "Enter" && event.key !== " ") return null;
    event.preventDefault();
    if (by) return this.#moveBy(by, options);
    if (to === null && this.reading !== null) return null;
    if (to === null) this.sheet.open(this.answer.chipOf(this.cursor));
    return this.move(to ?? this.cursor, options);
  }
}

/** The step to open a finished run on: drawn below the first rank with the most surprisal. */
function mostTelling(steps) {
  let best = 0;
  let most = -1;
  steps.slice(0, 200).forEach((step, i) => {
    const kept = (step.candidates ?? []).filter((c) => c[2] > 0).length;
    const score = step.raw_rank > 1 && !step.token.special && kept < 12 ? Math.min(5, surprisal(step)) : 0;
    if (score > most) [most, best] = [score, i];
  });
  return best;
}
