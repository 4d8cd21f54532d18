// Plays a recorded run into a stage at the pace of its own clock, or at a set one. Knows no page.

const BATCH_MS = 33;

/** When each event is due, in seconds after the start; `rate` is tokens a second in each lane, null: as recorded. */
export function dues(events, race, rate = null) {
  let clock = 0;
  return events.map((event) => {
    if (rate) clock = event.event === "stepped" ? Math.max(clock, (event.step + 1) / rate) : clock;
    else clock = race ? clock + span(event) : Math.max(clock, until(event));
    return clock;
  });
}

const until = (event) => event.end_seconds ?? event.seconds ?? 0;

/** The sides of a race take turns and each has a clock of its own: what counts is how long a part took. */
const span = ({ start_seconds: start, end_seconds: end }) => (end === undefined ? 0 : Math.max(0, end - start));

export class Player {
  /** `changed` is called whenever the state below has changed. */
  constructor(handle, packet, race, changed) {
    Object.assign(this, { handle, packet, race, changed, shown: 0, playing: false, rate: null, timer: 0 });
    this.total = packet.events.filter((event) => event.event === "stepped").length;
    this.dues = dues(packet.events, race);
  }

  /** Tokens that are shown. */
  get steps() {
    return this.packet.events.slice(0, this.shown).filter((event) => event.event === "stepped").length;
  }

  toggle() {
    if (this.playing) return this.stop();
    if (this.shown >= this.packet.events.length) this.shown = 0;
    this.playing = true;
    this.#aim();
    this.#tick();
    return this.changed();
  }

  stop() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.playing = false;
    this.changed();
  }

  /** Everything at once. */
  end() {
    this.stop();
    this.#send(this.packet.events.length);
    this.changed();
  }

  setRate(rate) {
    this.rate = rate;
    this.dues = dues(this.packet.events, this.race, rate);
    if (this.playing) this.#aim();
  }

  /** The moment at which playing would have begun, had it played up to here without a pause. */
  #aim() {
    this.began = performance.now() - 1000 * (this.shown ? this.dues[this.shown - 1] : 0);
  }

  #tick() {
    const seconds = (performance.now() - this.began) / 1000;
    const due = this.dues.findIndex((one) => one > seconds);
    this.#send(due < 0 ? this.packet.events.length : Math.max(1, due));
    if (this.shown >= this.packet.events.length) return this.stop();
    this.timer = setTimeout(() => this.#tick(), BATCH_MS);
    return this.changed();
  }

  #send(upTo) {
    if (upTo <= this.shown) return;
    const { run, events, label } = this.packet;
    this.handle.packet({ run, label, first: this.shown, events: events.slice(this.shown, upTo) });
    this.shown = upTo;
  }
}
