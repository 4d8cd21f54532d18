// Packets in order: what is new is folded, what was held already is skipped, a gap is asked for again.

import { Run, advance } from "./run.js";

const ASK_AGAIN_MS = 1000;
const RUNS = { begin: (id) => new Run(id), advance };

export class Intake {
  /** `record` says what a run is here: how it begins, and how it takes an event. */
  constructor(send, record = RUNS) {
    Object.assign(this, { send, record, run: record.begin("") });
    this.counters = { packets: 0, gaps: 0, events: 0, painted: 0, backlog: 0, steps: 0 };
    this.asked = { from: -1, at: 0 };
  }

  /** Take the events of `packet`; returns {reset, changed}. */
  accept(packet) {
    this.counters.packets += 1;
    const events = Array.isArray(packet.events) ? packet.events : [];
    if (!packet.run) return { reset: false, changed: false };
    const reset = this.#begins(packet, events);
    if (reset) this.#restart(packet.run);
    const first = packet.first ?? 0;
    if (first > this.run.events) {
      this.#ask();
      return { reset, changed: reset };
    }
    const fresh = events.slice(this.run.events - first);
    for (const event of fresh) this.record.advance(this.run, event);
    this.counters.events = this.run.events;
    this.counters.steps = this.run.steps;
    return { reset, changed: reset || fresh.length > 0 };
  }

  #begins(packet, events) {
    if (packet.run !== this.run.id) return true;
    return packet.first === 0 && events.length > 0 && this.run.events > 0;
  }

  #restart(id) {
    this.run = this.record.begin(id);
    this.asked = { from: -1, at: 0 };
    Object.assign(this.counters, { events: 0, painted: 0, backlog: 0, steps: 0 });
  }

  #ask() {
    this.counters.gaps += 1;
    const from = this.run.events;
    const now = performance.now();
    if (this.asked.from === from && now - this.asked.at < ASK_AGAIN_MS) return;
    this.asked = { from, at: now };
    this.send("gap", { run: this.run.id, from });
  }
}
