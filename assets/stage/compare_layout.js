// Compare: lanes of one run side by side, then every fork.

import { Banner } from "./banner.js";
import { jump } from "./chips.js";
import { box, make, setText } from "./dom.js";
import { Fork } from "./fork.js";
import { Herald } from "./herald.js";
import { LaneCard } from "./lane_card.js";
import { divergence } from "./lanes.js";
import { MeasureTable } from "./measure_table.js";
import { showNotes } from "./notes.js";
import { count, duration, rate } from "./numbers.js";
import { Prove } from "./prove.js";
import { timing } from "./run.js";
import { Reference } from "./reference.js";
import { Tip } from "./tip.js";
import { Transport } from "./transport.js";
import { TreeCard } from "./tree_card.js";
import { Sentence } from "./words.js";

/** More lanes than these are draws of one distribution: the tree shows them, not cards side by side. */
const CARDS = 7;

export class CompareLayout {
  constructor(scene, layer) {
    this.scene = scene;
    const { words, glossary } = scene;
    scene.listenToLane = (card) => this.#listen(card);
    scene.proveLane = (lane, step) => this.#prove(lane, step);
    this.prove = new Prove(scene, layer);
    this.tip = new Tip(words, layer);
    this.banner = new Banner(scene);
    this.lead = new Sentence(make("p", "ft-lead"), words, glossary.term);
    this.notes = make("p", "ft-notes");
    this.error = make("p", "ft-error");
    this.error.setAttribute("role", "alert");
    this.row = make("div", "ft-lanes");
    this.row.setAttribute("role", "group");
    this.row.setAttribute("aria-label", words.say("compare.lanes"));
    this.reference = new Reference(words, () => this.#again());
    this.table = new MeasureTable(scene);
    this.fork = new Fork(scene);
    this.tree = new TreeCard(scene);
    this.herald = new Herald();
    this.transport = new Transport(scene, { lanes: true });
    this.steering = box("ft-compare-steering", this.transport.node);
    this.node = box("ft-compare", this.banner.node, box("ft-compare-lead", this.lead.node, this.banner.label, this.reference.node),
      this.steering, this.error, this.notes, this.tree.node, this.row, this.table.node, this.fork.node, this.herald.node);
    this.reset();
  }

  reset() {
    this.cards = [];
    this.row.replaceChildren();
    this.herald.reset();
    this.reference.reset();
    this.table.reset();
    this.fork.reset();
    this.tree.reset();
    this.prove.close();
    this.tip.hide();
  }

  steps(run) {
    return run.steps;
  }

  paint({ run, label, progress, error, note, steering }) {
    const { words } = this.scene;
    this.run = run;
    this.transport.paint({ run, lane: run.lanes[0] ?? null, cursor: -1, steering });
    this.banner.paint({ label, progress, run });
    this.#lead(run);
    const message = error || run.failed?.message || "";
    setText(this.error, message);
    this.error.hidden = !message;
    showNotes(this.notes, words, run, note);
    const drawn = this.tree.paint(run);
    const many = run.lanes.length > CARDS && !this.tree.node.hidden;
    this.node.classList.toggle("ft-many", many);
    this.fork.node.hidden = many || run.lanes.length < 2;
    this.row.hidden = many;
    this.table.node.hidden = many;
    if (!many && run.lanes.length > this.cards.length) this.#build(run);
    const painted = many ? [this.#many(run, drawn)] : this.#compare(run);
    if (label !== "recorded" && run.done && run.lanes.length) this.herald.tell(() => "", words.say("compare.all_ended", { n: run.lanes.length }));
    return painted.reduce((a, b) => a + b, 0);
  }

  destroy() {
    clearTimeout(this.tree.timer);
    this.prove.destroy();
  }

  /** Draws are measured once they have ended: their number is too large for a table that grows. */
  #many(run, drawn) {
    this.reference.node.hidden = true;
    if (run.done) this.table.paint(run, run.lanes[0], true);
    return drawn;
  }

  #prove(lane, cursor) {
    this.prove.paint({ run: this.run, lane, cursor });
    this.prove.open("processed");
  }

  /** Everything that is seen from the reference; how many steps each lane shows. */
  #compare(run) {
    const reference = this.reference.paint(run);
    const painted = this.cards.map((card) =>
      card.paint(run, reference, card.lane === reference ? null : divergence(reference, card.lane)));
    this.table.paint(run, reference);
    this.fork.paint(run, reference);
    return painted;
  }

  #again() {
    if (this.run) this.#compare(this.run);
  }

  #build(run) {
    this.cards = run.lanes.map((lane) => new LaneCard(this.scene, lane));
    this.row.style.setProperty("--ft-lanes", String(Math.min(4, this.cards.length)));
    this.row.replaceChildren(...this.cards.map((card) => card.node));
  }

  #lead(run) {
    const { words } = this.scene;
    if (!run.started) return this.lead.show("compare.waiting");
    const times = timing(run, { steps: [] });
    if (times.prefill === null) {
      const total = run.promptTokens;
      return this.lead.show("headline.reading", { total: words.many("tokens", total, count(total)) });
    }
    const ends = run.lanes.flatMap((lane) => lane.steps.slice(-1).map((step) => step.end_seconds));
    const span = Math.max(0, ...ends) - (run.prefilled?.end_seconds ?? 0);
    const decoded = run.lanes.reduce((sum, lane) => sum + Math.max(0, lane.steps.length - 1), 0);
    return this.lead.show(decoded && span > 0 ? "compare.prefill" : "compare.prefill_running", {
      read: words.many("tokens", times.computed, count(times.computed)), time: duration(times.prefill),
      n: run.lanes.length, more: count(run.steps), rate: rate(decoded / span),
    });
  }

  #listen(card) {
    const { node } = card.chips;
    this.tip.watch(node, (chip) => {
      const step = card.lane.steps[Number(chip.dataset.i)];
      return step ? { step, figures: this.run.figures } : null;
    });
    node.addEventListener("keydown", (event) => {
      const chip = event.target.closest?.(".ft-token");
      if (!chip || event.ctrlKey || event.metaKey || event.altKey) return;
      const n = card.chips.items.length;
      const at = Number(chip.dataset.i);
      const by = jump(event, node);
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        return this.fork.look(this.run, card.lane, at);
      }
      const to = by ? at + by : event.key === "Home" ? 0 : event.key === "End" ? n - 1 : null;
      if (to === null) return;
      event.preventDefault();
      card.chips.items[Math.min(n - 1, Math.max(0, to))].chip.focus();
    });
    node.addEventListener("click", (event) => {
      const chip = event.target.closest?.(".ft-token");
      chip?.focus();
      if (chip) this.fork.look(this.run, card.lane, Number(chip.dataset.i));
    });
  }
}
