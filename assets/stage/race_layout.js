// A race: the same run with and without its KV cache, live, side by side; then the triangle.

import { Banner } from "./banner.js";
import { box, make, region, setText } from "./dom.js";
import { showNotes } from "./notes.js";
import { count, duration } from "./numbers.js";
import { RACES, decodeSeconds, workOf } from "./race.js";
import { RaceSide } from "./race_side.js";
import { RaceTimes } from "./race_times.js";
import { RaceWork } from "./race_work.js";
import { quantile } from "./run.js";
import { Sentence } from "./words.js";

export class RaceLayout {
  static record = RACES;

  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.banner = new Banner(scene);
    this.lead = new Sentence(make("p", "ft-lead"), words, glossary.term);
    this.meter = box("ft-meter ft-race-meter", make("i"));
    this.meter.setAttribute("role", "progressbar");
    this.meter.setAttribute("aria-label", words.say("race.progress"));
    this.head = box("ft-card ft-race-lead", this.banner.label, this.lead.node, this.meter);
    this.notes = make("div", "ft-notes");
    this.error = make("p", "ft-error");
    this.error.setAttribute("role", "alert");
    this.sides = ["cached", "uncached"].map((which) => new RaceSide(scene, which));
    this.times = new RaceTimes(scene);
    this.work = new RaceWork(scene);
    const triangle = region(words.say("race.triangle"), "ft-card-triangle");
    triangle.append(make("h2", "ft-title", words.say("race.triangle")), this.work.node);
    this.cards = box("ft-race-cards",
      box("ft-race-sides", ...this.sides.map((side) => side.node)), this.times.node, triangle);
    this.node = box("ft-race", this.banner.node, this.head, this.error, this.notes, this.cards);
    this.reset();
  }

  reset() {
    this.sides.forEach((side) => side.reset());
    this.times.reset();
  }

  steps(race) {
    return race.steps;
  }

  paint({ run: race, label, progress, error, note }) {
    this.banner.paint({ label: label === "recorded" ? "recorded_race" : label, progress, run: race.notes });
    const message = error || this.#failure(race);
    setText(this.error, message);
    this.error.hidden = !message;
    showNotes(this.notes, this.scene.words, race.notes, note || (race.sixteenBit ? this.scene.words.say("race.sixteen") : ""));
    const begun = race.events > 0;
    this.cards.hidden = !begun;
    this.#lead(race, begun);
    if (begun) this.#cards(race);
    return race.steps;
  }

  destroy() {
    this.times.destroy();
    this.work.destroy();
  }

  #failure(race) {
    return race.sides.find((run) => run.failed)?.failed.message ?? "";
  }

  #cards(race) {
    race.sides.forEach((run, i) => this.sides[i].paint(run, race.parted));
    this.times.paint(race);
    const steps = Math.min(...race.sides.map((run) => run.steps));
    const [cached, uncached] = race.sides.map((run) => workOf(run, steps));
    this.work.show({
      prompt: race.promptTokens, steps, planned: race.done ? steps : race.most, cached, uncached,
      key: steps ? "race.work" : "race.work_none",
    });
  }

  #lead(race, begun) {
    const most = race.most;
    const n = race.ticks.length;
    this.head.dataset.state = begun ? "begun" : "waiting";
    this.meter.hidden = !begun;
    this.meter.classList.toggle("ft-on", begun);
    this.meter.firstChild.style.transform = `scaleX(${most ? Math.min(1, n / most) : 0})`;
    this.meter.setAttribute("aria-valuenow", String(n));
    this.meter.setAttribute("aria-valuemax", String(most));
    if (!begun) return this.lead.show("race.waiting");
    const seconds = race.sides.map(decodeSeconds);
    if (seconds.some((all) => !all.length)) return this.lead.show("race.reading", { p: count(race.promptTokens) });
    const [withIt, without] = seconds.map((all) => duration(median(all)));
    const [lastWith, lastWithout] = seconds.map((all) => duration(all.at(-1)));
    return this.lead.show(race.done ? "race.done" : "race.running", {
      n: count(n), most: count(most), with: withIt, without, last_with: lastWith, last_without: lastWithout,
    });
  }
}

const median = (values) => quantile([...values].sort((a, b) => a - b), 0.5);
