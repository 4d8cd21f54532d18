// What the tour is told with: the recorded runs, and the reader's own once it has ended. Knows no page.

import { Run, advance } from "../stage/run.js";

/** Events as a run that can be drawn. */
export function folded(events) {
  const run = new Run(events[0]?.run ?? "");
  for (const event of events) advance(run, event);
  return run;
}

export class Material {
  constructor() {
    Object.assign(this, { lesson: null, recorded: {}, live: null, events: [], told: {}, progress: null, error: "", left: new Set() });
  }

  get ready() {
    return this.lesson !== null;
  }

  /** The run under way that is not told of yet; null where there is none. */
  get underWay() {
    return this.live && !this.live.done ? this.live : null;
  }

  /** Whether the reader's own run has ended with nothing to tell of. */
  get tooShort() {
    return Boolean(this.live?.done) && this.live.steps < 2 && !this.live.failed;
  }

  /** Take a packet; returns whether anything that is shown has changed. */
  accept(packet) {
    if (packet.lesson) this.#open(packet.lesson);
    if (packet.run && Array.isArray(packet.events)) this.#grow(packet);
    for (const name of ["facts", "softmax", "score"]) {
      if (packet[name] && packet[name].run === this.live?.id) this.told[name] = packet[name];
    }
    if ("progress" in packet) this.progress = packet.progress;
    if ("error" in packet) this.error = packet.error;
    return Object.keys(packet).length > 1;
  }

  /** The run that the chapters are told with: {run, events, facts, own}. */
  get main() {
    if (this.told.facts && this.live.done) {
      return { run: this.live, events: this.events, facts: this.told.facts, own: true };
    }
    return { ...this.recorded.main, facts: this.lesson.facts, own: false };
  }

  /** The first step at several temperatures; `own` tells whether it belongs to the reader's run. */
  get softmax() {
    const own = this.main.own && Boolean(this.told.softmax);
    return { tables: (own ? this.told.softmax : this.lesson.softmax).tables, own };
  }

  /** The prompt's own probabilities. */
  get score() {
    const own = this.main.own && Boolean(this.told.score);
    return { ...(own ? this.told.score : this.lesson.score), own };
  }

  saved(n) {
    return this.lesson.saved.find((row) => row.n === n);
  }

  pairs(n) {
    return this.lesson.pairs.find((row) => row.n === n)?.pairs;
  }

  /** The cache with `heads` KV heads at `tokens` for `users`. */
  cell(tokens, users, heads) {
    return this.lesson.cache.cells.find((c) => c.tokens === tokens && c.users === users && c.heads === heads);
  }

  #open(lesson) {
    this.lesson = lesson;
    for (const [name, events] of Object.entries(lesson.runs)) this.recorded[name] = { run: folded(events), events };
  }

  #grow({ run, first, events }) {
    if (run === this.live?.id && this.told.facts) return;
    if (first > 0 && this.left.has(run)) return; // its stream goes on beside that of the run that took its place
    if (this.live && run !== this.live.id) this.left.add(this.live.id);
    this.left.delete(run);
    if (run !== this.live?.id || (first === 0 && events.length > 0 && this.events.length > 0)) {
      Object.assign(this, { live: new Run(run), events: [], told: {}, error: "" });
    }
    if (first > this.events.length) return;
    for (const event of events.slice(this.events.length - first)) {
      this.events.push(event);
      advance(this.live, event);
    }
  }
}
