// The candidates of one step, ordered for showing. Arithmetic only; knows no page.

import { readCandidate } from "./run.js";

const NOISE = 1e-9;

/**
 * The rows to show, at most `limit`, the chosen token always among them: what survived by processed
 * probability, then what was removed by the model's. `others` is everything that has no row.
 */
export function choices(step, vocabulary, limit) {
  const all = ranked(step);
  const rows = all.slice(0, limit);
  const chosen = all.find((c) => c.id === step.token.id);
  if (chosen && !rows.includes(chosen)) rows[rows.length - 1] = chosen;
  rows.sort(byProcessed);
  const left = (key) => clamp(1 - rows.reduce((sum, row) => sum + row[key], 0));
  const complete = rows.filter((row) => row.processed > 0).length >= step.kept_count;
  return {
    rows,
    total: all.length,
    cuts: cutsOf(rows),
    others: {
      count: Math.max(0, (vocabulary ?? all.length) - rows.length),
      raw: left("raw"), processed: complete ? 0 : left("processed"),
    },
  };
}

/** All recorded candidates of a step, most probable after settings first, each with its model rank. */
export function ranked(step) {
  const all = (step.candidates ?? []).map(readCandidate);
  const byModel = [...all].sort((a, b) => b.raw - a.raw || a.id - b.id);
  byModel.forEach((c, i) => { c.rank = c.id === step.token.id ? step.raw_rank : i + 1; });
  return all.sort(byProcessed);
}

/**
 * Segments of the cumulative processed distribution, in the order in which a draw walks it. A token that was
 * drawn from far beyond the recorded candidates has an unknown place there: it is shown where the draw fell.
 */
export function cumulative(step) {
  let at = 0;
  const all = ranked(step).filter((c) => c.processed > 0);
  const far = all.length && all.at(-1).id === step.token.id && step.raw_rank > (step.candidates ?? []).length ? all.pop() : null;
  const parts = all.map((c) => {
    const part = { ...c, from: at, to: Math.min(1, at + c.processed) };
    at = part.to;
    return part;
  });
  const rest = parts.length >= step.kept_count ? 0 : clamp(1 - at);
  if (far) {
    const from = Math.max(at, Math.min(1 - far.processed, (step.draw ?? 1) - far.processed / 2));
    parts.push({ ...far, from, to: from + far.processed, over: true });
  }
  return { parts, rest };
}

const byProcessed = (a, b) => b.processed - a.processed || b.raw - a.raw || a.id - b.id;

const clamp = (mass) => (mass < NOISE ? 0 : Math.min(1, mass));

/** Where a stage cuts: before which row, and the stage's name. */
function cutsOf(rows) {
  const cuts = [];
  rows.forEach((row, i) => {
    const before = i ? rows[i - 1].removedBy : null;
    if (row.removedBy && row.removedBy !== before && !cuts.some((cut) => cut.stage === row.removedBy)) {
      cuts.push({ before: i, stage: row.removedBy });
    }
  });
  return cuts;
}
