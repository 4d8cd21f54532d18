// A race as the fold of its events, as playground/core/race.py folds them. Knows no page.

import { Run, advance, timing } from "./run.js";

const CACHED = ".cached";
const UNCACHED = ".uncached";

export class Race {
  constructor(id) {
    Object.assign(this, { id, events: 0, ticks: [], raced: null });
    this.cached = new Run(id + CACHED);
    this.uncached = new Run(id + UNCACHED);
  }

  get sides() {
    return [this.cached, this.uncached];
  }

  get steps() {
    return this.cached.steps + this.uncached.steps;
  }

  get done() {
    return this.raced !== null || this.sides.some((run) => run.failed);
  }

  get promptTokens() {
    return this.cached.promptTokens || this.uncached.promptTokens;
  }

  /** New tokens asked for: at most so many will come. */
  get most() {
    const lane = this.cached.lanes[0] ?? this.uncached.lanes[0];
    return lane?.decoding.max_new_tokens ?? 0;
  }

  /** In 16-bit numbers both sides round differently, so equality is not promised. */
  get sixteenBit() {
    return /16$/.test(this.notes.model.dtype ?? "");
  }

  /** The run whose notes speak for both. */
  get notes() {
    return this.cached.started ? this.cached : this.uncached;
  }

  /** The first token chosen differently, null while there is none. */
  get parted() {
    if (this.raced) return this.raced.first_divergence;
    return this.ticks.find((tick) => tick.equal === false)?.step ?? null;
  }

  /** Ticks of steps at which both sides read the same text. */
  get compared() {
    return this.ticks.filter((tick) => tick.logit_difference !== null);
  }
}

const ACTS = {
  ticked(race, event) { race.ticks.push(event); },
  raced(race, event) { race.raced = event; },
};

function advanceRace(race, event) {
  race.events += 1;
  const act = ACTS[event.event];
  if (act) return act(race, event);
  return advance(String(event.run).endsWith(UNCACHED) ? race.uncached : race.cached, event);
}

/** What an intake needs to know of races. */
export const RACES = { begin: (id) => new Race(id), advance: advanceRace };

const NOTHING = { kv_computed: 0, attention_dot_products_needed: 0, attention_dot_products_computed: 0 };

/** The work of one side for its first `steps` tokens, as the server counted it. */
export const workOf = (run, steps) => stepsOf(run)[steps - 1]?.work ?? NOTHING;

export const stepsOf = (run) => run.lanes[0]?.steps ?? [];

/** Seconds of each decode step, the first token's choice left out. */
export const decodeSeconds = (run) =>
  stepsOf(run).slice(1).map((step) => step.end_seconds - step.start_seconds);

export const prefillSeconds = (run) => timing(run, { steps: [] }).prefill;
