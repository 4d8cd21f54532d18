// A run as the fold of its events, as playground/core/run.py folds them. Knows no page.

const LN2 = Math.log(2);

/** A token of the wire, [id, text, bytes, special], as an object. */
export function readToken(wire) {
  const [id, text, bytes, special] = Array.isArray(wire) ? wire : [];
  return { id, text: String(text ?? ""), bytes: String(bytes ?? ""), special: Boolean(special) };
}

/** A candidate of the wire, [token, raw_logprob, processed, removed_by], as an object. */
export function readCandidate([token, logprob, processed, removedBy]) {
  return { ...readToken(token), raw: Math.exp(logprob), processed, removedBy: removedBy ?? null };
}

export class Lane {
  constructor(index, decoding) {
    Object.assign(this, { index, decoding: decoding ?? {}, resumed: [], steps: [], finished: null, failed: null });
    this.first = this.decoding;
    this.views = new Map();
  }

  /** The lane with the settings under which token `step` was chosen: a run may go on under others. */
  at(step) {
    if (!this.resumed.length && !this.first.once) return this;
    const passed = this.resumed.filter((event) => event.step <= step).length;
    const last = this.resumed[passed - 1];
    const decoding = last?.decoding ?? this.first;
    const over = decoding.once && step - (last?.step ?? 0) > (decoding.forced?.length ?? 0);
    const key = `${passed}/${Boolean(over)}`;
    if (!this.views.has(key)) {
      const settings = over ? { ...decoding, bias: [], banned: [], once: false } : decoding;
      this.views.set(key, Object.create(this, { decoding: { value: settings } }));
    }
    return this.views.get(key);
  }

  get done() {
    return this.finished !== null || this.failed !== null;
  }

  get reason() {
    if (this.failed) return "error";
    return this.finished?.reason ?? null;
  }

  get greedy() {
    const { strategy, temperature } = this.decoding;
    return strategy === "greedy" || (strategy === "sample" && temperature === 0);
  }

  get ids() {
    return this.steps.map((step) => step.token.id);
  }
}

export class Run {
  constructor(id) {
    Object.assign(this, {
      id, events: 0, started: null, prefilling: null, prefilled: null, reading: null, failed: null, lanes: [], steps: 0,
    });
  }

  get done() {
    return Boolean(this.failed) || (this.lanes.length > 0 && this.lanes.every((lane) => lane.done));
  }

  get model() {
    return this.started?.model ?? {};
  }

  get promptTokens() {
    return this.started?.prompt?.length ?? this.prefilled?.kv_tokens ?? 0;
  }

  /** Two figures for a 16-bit run, else three: more would be noise. */
  get figures() {
    return this.model.weights || /16$/.test(this.model.dtype ?? "") ? 2 : 3;
  }
}

/** Give `run` one more event. An event of an unknown kind or lane counts, and changes nothing. */
export function advance(run, event) {
  run.events += 1;
  const lane = run.lanes[event.lane ?? 0];
  const act = ACTS[event.event];
  if (act) act(run, event, lane);
}

const ACTS = {
  started(run, event) {
    run.started = event;
    run.lanes = (event.request?.lanes ?? [{}]).map((decoding, i) => new Lane(i, decoding));
  },
  prefilling(run, event) { run.prefilling = event; },
  prefilled(run, event) { run.prefilled = event; },
  promptread(run, event) { run.reading = event.tokens ?? []; },
  resumed(run, event, lane) {
    if (!lane) return;
    lane.resumed.push(event);
    lane.decoding = event.decoding ?? lane.decoding;
  },
  stepped(run, event, lane) {
    if (!lane) return;
    lane.steps.push({ ...event, token: readToken(event.token) });
    run.steps += 1;
  },
  finished(run, event, lane) { if (lane) lane.finished = event; },
  failed(run, event, lane) {
    if (event.lane === null || event.lane === undefined) run.failed = event;
    else if (lane) lane.failed = event;
  },
};

/** Bits of surprisal of a step's token under the model. */
export const surprisal = (step) => Math.max(0, -step.raw_logprob / LN2);

/** The shade of a surprisal, 0 to 4; the legend names the same limits. */
export const shade = (bits) => (bits < 1 ? 0 : bits < 2.5 ? 1 : bits < 4.5 ? 2 : bits < 7 ? 3 : 4);

const known = new WeakMap();

/** Times of a lane, prefill and decode never mixed; null where not known yet. A cursor that moves changes none. */
export function timing(run, lane) {
  const held = known.get(lane.steps);
  if (held && held.n === lane.steps.length && held.filled === run.prefilled) return held.times;
  const times = timed(run, lane);
  known.set(lane.steps, { n: lane.steps.length, filled: run.prefilled, times });
  return times;
}

function timed(run, lane) {
  const ends = lane.steps.map((step) => step.end_seconds);
  const gaps = ends.slice(1).map((end, i) => end - ends[i]);
  const span = gaps.length ? ends.at(-1) - ends[0] : 0;
  const filled = run.prefilled;
  const prefill = filled ? filled.end_seconds - filled.start_seconds : null;
  const sorted = [...gaps].sort((a, b) => a - b);
  return {
    prefill,
    computed: filled?.tokens_computed ?? 0,
    reused: filled?.tokens_reused ?? 0,
    prefillRate: prefill ? filled.tokens_computed / prefill : null,
    first: ends[0] ?? null,
    decodeRate: span > 0 ? gaps.length / span : null,
    median: quantile(sorted, 0.5),
    p95: gaps.length > 1 ? quantile(sorted, 0.95) : null,
    warmUp: Boolean(filled?.warm_up),
  };
}

/** The value at `q` of sorted values, linear between ranks. */
export function quantile(sorted, q) {
  if (!sorted.length) return null;
  const place = q * (sorted.length - 1);
  const low = Math.floor(place);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
}
