// Same logits, other settings: what they would take at a recorded step, from the record alone.
//
// The record holds the most probable candidates and, by the logsumexp, how much lies beyond them. What is not
// listed is carried as an interval; where both of its ends lead to the same token that token is the answer, and
// otherwise it is not known. Arithmetic only; knows no page.

const SLACK = 1e-7;
const KNOWN_WITHIN = 0.01;

/**
 * {token, low, high, rows} for what `decoding` takes with `draw` (null: none), or {unknown, rows}: the key of the
 * reason. `seen` are the ids that a penalty looks at. A row is {processed, removedBy} of a listed candidate by its
 * id; processed is null where the record tells it to less than a hundredth.
 */
export function wouldTake(step, decoding, draw, seen, vocabulary) {
  if ((step.distribution ?? "raw") !== "raw" || !step.candidates?.length) return { unknown: "beyond", rows: new Map() };
  if (NAMED.some((name) => decoding[name]?.length)) return { unknown: "tokens", rows: new Map() };
  const state = recorded(step, vocabulary);
  for (const name of stagesOf(decoding)) {
    const fault = STAGES[name](state, decoding[name], seen);
    if (fault) return { unknown: fault, rows: new Map() };
    state.head.sort(byScore);
  }
  if (!state.head.length) return { unknown: "beyond", rows: new Map() };
  if (greedy(decoding)) return taken(state, state.head[0], 1, 1, onlyFirst(state));
  const rows = shares(state);
  if (draw === null || draw === undefined) return { unknown: "no_draw", rows };
  const places = [state.low, state.high].flatMap((beyond) => [draw - SLACK, draw + SLACK].map((u) => landing(state, u, beyond)));
  const at = places[0];
  if (at === state.head.length || places.some((place) => place !== at)) return { unknown: "beyond", rows };
  const whole = sum(state.head);
  const { weight } = state.head[at];
  return taken(state, state.head[at], weight / (whole + state.high), weight / (whole + state.low), rows);
}

/** Settings that name tokens, of which the record may not hold the scores. */
const NAMED = ["forced", "bias", "banned"];

const greedy = ({ strategy, temperature }) => strategy === "greedy" || temperature === 0;

/** The listed candidates without a gap, and the interval of what lies beyond: weights under the model. */
function recorded(step, vocabulary) {
  const logsumexp = step.logsumexp ?? 0; // without it scores are known but for a constant, which only a penalty minds
  const listed = (step.candidates ?? []).map(([[id], logprob]) => ({ id, score: logprob + logsumexp }));
  const whole = step.raw_rank > listed.length ? listed.filter(({ id }) => id !== step.token.id) : listed;
  const head = whole.map((one) => ({ ...one, weight: Math.exp(one.score - logsumexp) })).sort(byScore);
  const beyond = 1 - sum(head);
  return {
    head, logsumexp, scored: typeof step.logsumexp === "number", listed: whole.map(({ id }) => id), removed: new Map(), top: head.at(-1)?.weight ?? 1, floor: head.at(-1)?.score ?? 0,
    low: Math.max(0, beyond - SLACK), high: Math.max(0, beyond + SLACK), left: Math.max(0, vocabulary - head.length),
  };
}

/** The stages that act, in their order, as core/decoding.active_stages. */
function stagesOf(decoding) {
  const on = Object.keys(OFF).filter((name) => decoding[name] !== undefined && decoding[name] !== null && decoding[name] !== OFF[name])
    .filter((name) => name === "repetition_penalty" || !greedy(decoding));
  const order = Array.isArray(decoding.order) ? decoding.order : Object.keys(OFF);
  return on.sort((a, b) => order.indexOf(a) - order.indexOf(b));
}

const OFF = { repetition_penalty: 1, temperature: 1, top_k: 0, top_p: 1, min_p: 0, typical_p: 1 };

/** Each changes the state in place; a string is why the record does not say. */
const STAGES = {
  repetition_penalty(state, penalty, seen) {
    if (penalty < 1 || state.reshaped || !state.scored) return "penalty";
    const { head, floor, logsumexp } = state;
    const hidden = [...seen].filter((id) => !head.some((one) => one.id === id)).length;
    state.low = Math.max(0, state.low - hidden * state.top);
    for (const one of head) {
      if (!seen.has(one.id)) continue;
      one.score = one.score > 0 ? one.score / penalty : one.score * penalty;
      one.weight = Math.exp(one.score - logsumexp);
    }
    for (const one of head.filter(({ score }) => score < floor)) {
      state.low += one.weight;
      state.high += one.weight;
      state.left += 1;
    }
    state.head = head.filter(({ score }) => score >= floor);
    return null;
  },

  temperature(state, temperature) {
    const a = 1 / temperature;
    const { low, high, left, top } = state;
    const even = (mass) => (left ? left * (mass / left) ** a : 0);
    const steep = (mass) => (mass > 0 ? mass * top ** (a - 1) : 0);
    [state.low, state.high] = a > 1 ? [even(low), steep(high)] : [steep(low), even(high)];
    state.top = top ** a;
    state.reshaped = true;
    for (const one of state.head) Object.assign(one, { score: one.score / temperature, weight: one.weight ** a });
    return null;
  },

  top_k(state, k) {
    const { head, left } = state;
    if (k < head.length) {
      const last = head[k - 1].score;
      keep(state, ({ score }) => score >= last, "top_k");
    } else if (state.high > 0 && left) {
      const more = Math.min(left, k - head.length);
      state.low *= more / left;
      state.high = Math.min(state.high, more * state.top);
      state.left = more;
    }
    return null;
  },

  top_p(state, p) {
    const whole = sum(state.head);
    const cuts = [state.low, state.high].map((beyond) => cut(state.head, p * (whole + beyond)));
    if (cuts[0] !== cuts[1]) return "beyond";
    if (cuts[0] === null) {
      state.low = Math.max(0, p * (whole + state.low) - whole);
      return null;
    }
    const kept = new Set(state.head.slice(0, cuts[0]));
    keep(state, (one) => kept.has(one), "top_p");
    return null;
  },

  min_p(state, p) {
    const least = p * (state.head[0]?.weight ?? 0);
    if (state.high > 0 && state.top >= least) state.low = 0;
    else keep(state, ({ weight }) => weight >= least, "min_p");
    return null;
  },

  typical_p(state, p) {
    if (state.high > 0) return "typical";
    const whole = sum(state.head);
    const bits = state.head.map((one) => ({ one, share: one.weight / whole }));
    const entropy = bits.reduce((all, { share }) => all - (share > 0 ? share * Math.log(share) : 0), 0);
    bits.sort((a, b) => Math.abs(-Math.log(a.share) - entropy) - Math.abs(-Math.log(b.share) - entropy));
    let mass = 0;
    const kept = new Set();
    for (const { one, share } of bits) {
      if (mass < p || !kept.size) kept.add(one);
      mass += share;
    }
    keep(state, (one) => kept.has(one), "typical_p");
    return null;
  },
};

/** What lies beyond is removed, and of the listed ones those that `stays` refuses. */
function keep(state, stays, stage) {
  for (const one of state.head) if (!stays(one)) state.removed.set(one.id, stage);
  Object.assign(state, { head: state.head.filter(stays), low: 0, high: 0, left: 0 });
}

/** How many of `head` reach `mass`, null where all of them do not; one at least. */
function cut(head, mass) {
  let reached = 0;
  for (let i = 0; i < head.length; i += 1) {
    reached += head[i].weight;
    if (reached >= mass) return i + 1;
  }
  return null;
}

/** Which of `head` the draw lands on; its length where it lands beyond. */
function landing({ head }, draw, beyond) {
  const target = Math.max(0, draw) * (sum(head) + beyond);
  let reached = 0;
  return Math.min(head.length, head.findIndex((one) => (reached += one.weight) > target) >>> 0);
}

function taken(state, { id }, low, high, rows) {
  return { token: id, low, high, rows };
}

function onlyFirst({ listed, head }) {
  return new Map(listed.map((id) => [id, id === head[0].id ? { processed: 1, removedBy: null } : { processed: 0, removedBy: "greedy" }]));
}

function shares({ head, removed, low, high }) {
  const whole = sum(head);
  const known = (high - low) / (whole + low) < KNOWN_WITHIN;
  const rows = new Map([...removed].map(([id, stage]) => [id, { processed: 0, removedBy: stage }]));
  for (const { id, weight } of head) rows.set(id, { processed: known ? weight / (whole + (low + high) / 2) : null, removedBy: null });
  return rows;
}

const sum = (list) => list.reduce((all, { weight }) => all + weight, 0);
const byScore = (a, b) => b.score - a.score || a.id - b.id;
