// A step's stages once more at another temperature, from what its record holds. Arithmetic only; knows no page.
//
// The record has the most probable candidates and the logsumexp of all logits. What it does not have, the
// rest of the vocabulary, is bounded: the logarithm of the rest's weight is a convex function of 1 / T, and
// its value at T 1, its slope there and its value at the run's own T are known. Everything is worked out
// with the least and with the most weight that the rest can have; what both agree on is certain.

const RESHAPING = ["repetition_penalty", "temperature"];
const ORDER = [...RESHAPING, "top_k", "top_p", "min_p", "typical_p"];
const OFF = { repetition_penalty: 1, temperature: 1, top_k: 0, top_p: 1, min_p: 0, typical_p: 1 };
const ROUNDING = 1e-8;
const SEEN = 1e-5;

/** The sides of the bounds: the rest as light and as heavy as it can be, and between them. */
export const SIDES = ["least", "middle", "most"];

/**
 * What is known of `step` of a lane: its candidates as {id, logprob, z} (z after the penalty, most probable
 * first), what the others can weigh, and the stages that act. `before` are the ids that a penalty looks at.
 */
export function known(step, decoding, vocabulary, before = new Set()) {
  const all = (step.candidates ?? []).map(([token, logprob, processed]) => ({ id: token[0], token, logprob, processed }));
  all.sort((a, b) => b.logprob - a.logprob || a.id - b.id);
  const own = all.findIndex((c) => c.id === step.token.id);
  const beyond = own >= 0 && step.raw_rank > own + 1 ? all[own] : null;
  const items = all.filter((c) => c !== beyond);
  const penalty = decoding.repetition_penalty ?? 1;
  const { shifts, banned } = chosenFor(decoding, step.step ?? 0);
  for (const c of items) {
    const logit = c.logprob + step.logsumexp + (shifts.get(c.id) ?? 0);
    c.z = (before.has(c.id) ? penalised(logit, penalty) : logit) - step.logsumexp;
  }
  const inside = new Set(items.map((c) => c.id));
  const touched = [...shifts.keys(), ...banned].some((id) => !inside.has(id));
  return {
    items: items.filter((c) => !banned.has(c.id)).sort(byWeight), beyond, decoding, penalty, touched,
    chosen: shifts.size + banned.size > 0, raised: [...shifts].some(([id, by]) => by > 0 && !inside.has(id)),
    limit: Math.min(...items.map((c) => c.logprob), 0),
    count: Math.max(0, (vocabulary ?? items.length) - items.length),
    points: points(step, items, decoding, penalty, shifts.size + banned.size > 0),
  };
}

/** What was added to some logits, and which tokens were ruled out, at token number `step`. */
function chosenFor({ bias = [], banned = [], forced = [], once = false }, step) {
  const over = once && step > forced.length;
  return { shifts: new Map(over ? [] : bias), banned: new Set(over ? [] : banned) };
}

const penalised = (logit, penalty) => (logit < 0 ? logit * penalty : logit / penalty);
const byWeight = (a, b) => b.z - a.z || a.id - b.id;
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Where the logarithm of the rest's weight is known, as [1 / T, logarithm], and its slope at T 1. */
function points(step, items, decoding, penalty, chosen) {
  const inside = sum(items.map((c) => Math.exp(c.logprob)));
  const rest = Math.max(0, 1 - inside);
  const nats = -step.raw_entropy_bits * Math.LN2 - sum(items.map((c) => Math.exp(c.logprob) * c.logprob));
  const found = { rest, slope: rest > SEEN ? Math.min(0, nats / rest) : null, exact: [] };
  if (rest > SEEN) found.exact.push([1, Math.log(rest)]);
  const own = chosen ? null : atOwn(step, items, decoding, penalty);
  if (own) found.exact.push(own);
  found.exact.sort((a, b) => a[0] - b[0]);
  return found;
}

/** The same at the run's own temperature, where it acted on the raw logits before every filter. */
function atOwn(step, items, decoding, penalty) {
  const T = decoding.temperature;
  const [best] = items;
  const stages = active(decoding, T);
  if (!best || !(T > 0) || T === 1 || penalty !== 1 || stages[0] !== "temperature" || !(best.processed > 0)) return null;
  const total = Math.exp(best.logprob / T) / (best.processed * step.kept_mass);
  const rest = total - sum(items.map((c) => Math.exp(c.logprob / T)));
  return rest > SEEN * total ? [1 / T, Math.log(rest)] : null;
}

/** The logarithm of what all others weigh at 1 / T = `beta`, at its `side`. */
export function restWeight({ points: at, count, limit, penalty, touched }, beta, side) {
  if (!count) return -Infinity;
  const here = at.exact.find(([x]) => Math.abs(x - beta) < 1e-9);
  const untouched = penalty === 1 && !touched;
  if (here && untouched) return here[1];
  const most = upper(at, count, limit, beta);
  if (side === "most") return most;
  const least = untouched ? lower(at, count, beta) : -Infinity;
  if (side === "least") return least;
  return least === -Infinity ? most - Math.LN2 : (Math.min(least, most) + most) / 2;
}

function upper({ exact, rest }, count, limit, beta) {
  const found = [[0, Math.log(count)], ...(exact.length ? exact : [[1, Math.log(rest + ROUNDING)]])];
  const next = found.findIndex(([x]) => x >= beta);
  if (next > 0) return line(found[next - 1], found[next], beta);
  return next === 0 ? found[0][1] : found.at(-1)[1] + (beta - found.at(-1)[0]) * limit;
}

function lower({ exact, rest, slope }, count, beta) {
  if (!(rest > SEEN)) return beta <= 1 && rest > ROUNDING ? Math.log(rest - ROUNDING) : -Infinity;
  let least = Math.log(rest) + (beta - 1) * slope;
  if (exact.length === 2 && (beta < exact[0][0] || beta > exact[1][0])) least = Math.max(least, line(...exact, beta));
  return least;
}

const line = ([x0, y0], [x1, y1], x) => y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);

/** The stages that act at temperature `T`, in the order of the settings. */
export function active(decoding, T) {
  const rank = (name) => {
    const at = (decoding.order ?? ORDER).indexOf(name);
    return at < 0 ? ORDER.length : at;
  };
  const on = ORDER.filter((name) => (name === "temperature" ? T !== 1 : (decoding[name] ?? OFF[name]) !== OFF[name]));
  return on.filter((name) => T > 0 || name === "repetition_penalty").sort((a, b) => rank(a) - rank(b));
}

/**
 * The distribution at temperature `T`: {parts, rest, loose}. Parts are the candidates that are left, most
 * probable first, each with its `share`; `rest` is the share of all others; `loose` tells that a
 * stage cannot be followed with what is known.
 */
export function at(what, T, side = "middle") {
  if (T === 0) return { parts: what.items.slice(0, 1).map((c) => ({ ...c, share: 1 })), rest: 0, loose: what.penalty < 1 || what.raised };
  const state = {
    what, side, beta: 1, items: what.items, rest: restWeight(what, 1, side), alive: true,
    loose: what.penalty < 1 || what.raised || late(what, T),
  };
  for (const stage of active(what.decoding, T)) STAGES[stage](state, what.decoding[stage], T);
  const weights = state.items.map((c) => Math.exp(c.z * state.beta));
  const rest = state.alive ? Math.exp(state.rest) : 0;
  const total = sum(weights) + rest;
  if (state.alive && state.items.some((c) => c.z < what.limit)) state.loose = true;
  return { parts: state.items.map((c, i) => ({ ...c, share: weights[i] / total })), rest: rest / total, loose: state.loose };
}

/** Whether a penalty, a shift or a ban comes after a filter, where it is not as if it had come first. */
function late({ decoding, penalty, chosen }, T) {
  const stages = active(decoding, T);
  const unnamed = !["bias", "ban"].every((name) => (decoding.order ?? [...ORDER, "bias", "ban"]).includes(name));
  if (chosen && unnamed && stages.some((name) => !RESHAPING.includes(name))) return true;
  return penalty !== 1 && stages.indexOf("repetition_penalty") > 1;
}

const STAGES = {
  repetition_penalty() { /* is in every z already: it comes before anything that looks at them */ },
  temperature(state, _, T) {
    const whole = restWeight(state.what, state.beta, state.side);
    const part = state.rest === whole ? 0 : state.rest - whole;
    state.beta = 1 / T;
    state.rest = restWeight(state.what, state.beta, state.side) + part;
    if (part) state.loose = true;
  },
  top_k(state, k) {
    const more = k - state.items.length;
    if (more <= 0) keep(state, state.items.slice(0, k));
    else if (state.alive && more < state.what.count) {
      const even = state.rest + Math.log(more / state.what.count);
      const most = Math.min(state.rest, Math.log(more) + state.what.limit * state.beta);
      state.rest = state.side === "least" ? even : state.side === "most" ? most : (even + most) / 2;
    }
  },
  top_p(state, p) {
    const weights = state.items.map((c) => Math.exp(c.z * state.beta));
    const wanted = p * (sum(weights) + (state.alive ? Math.exp(state.rest) : 0));
    let mass = 0;
    const last = weights.findIndex((w) => (mass += w) >= wanted * (1 - 1e-12));
    if (last >= 0) return keep(state, state.items.slice(0, last + 1));
    const one = state.side === "least" ? 0 : Math.exp(state.what.limit * state.beta) / (state.side === "most" ? 1 : 2);
    if (state.alive) state.rest = Math.min(state.rest, Math.log(Math.max(1e-300, wanted - mass + one)));
    return null;
  },
  min_p(state, p) {
    const least = state.items[0].z * state.beta + Math.log(p);
    const kept = state.items.filter((c) => c.z * state.beta >= least);
    const cut = state.what.limit * state.beta < least;
    if (kept.length < state.items.length || cut) keep(state, kept, !cut);
    else if (state.alive && state.side !== "most") state.rest = state.side === "least" ? -Infinity : state.rest - Math.LN2;
  },
  typical_p(state, p) {
    const total = sum(state.items.map((c) => Math.exp(c.z * state.beta))) + (state.alive ? Math.exp(state.rest) : 0);
    const bits = state.items.map((c) => Math.log(total) - c.z * state.beta);
    const each = Math.log(total) - state.rest + Math.log(Math.max(1, state.what.count));
    const entropy = sum(bits.map((x) => x * Math.exp(-x))) + (state.alive ? (Math.exp(state.rest) / total) * each : 0);
    const order = state.items.map((c, i) => [Math.abs(bits[i] - entropy), c, bits[i]]).sort((a, b) => a[0] - b[0]);
    let mass = 0;
    const last = order.findIndex(([, , x]) => (mass += Math.exp(-x)) >= p);
    const kept = new Set(order.slice(0, last < 0 ? order.length : last + 1).map(([, c]) => c));
    keep(state, state.items.filter((c) => kept.has(c)), last < 0);
    state.loose = true;
  },
};

function keep(state, items, alive = false) {
  state.items = items;
  state.alive = state.alive && alive;
}

/** Where `draw` lands: the candidate, or null for one of the others. */
export function landing({ parts, rest }, draw) {
  let mass = 0;
  const found = parts.find((c) => (mass += c.share) > draw);
  return found ?? (rest > 0 ? null : parts.at(-1) ?? null);
}
