// Comparing lanes of one prompt: where each leaves the reference, and its measures. Arithmetic only.

import { surprisal } from "./run.js";

/** The first step at which `lane` is not what `reference` is; null while they say the same. */
export function divergence(reference, lane) {
  const both = Math.min(reference.steps.length, lane.steps.length);
  for (let i = 0; i < both; i += 1) {
    if (reference.steps[i].token.id !== lane.steps[i].token.id) return i;
  }
  if (reference.done && lane.steps.length > both) return both;
  if (lane.done && reference.steps.length > both) return both;
  return null;
}

/** Measures of a lane, null where there is nothing to measure yet. */
export function measures(lane) {
  const { steps, ids } = lane;
  if (!steps.length) return { perplexity: null, choices: null, distinct: null, tokens: 0, used: null };
  return {
    perplexity: 2 ** mean(steps.map(surprisal)),
    choices: mean(steps.map((step) => step.kept_count)),
    distinct: distinctPairs(ids),
    tokens: steps.length,
    used: steps.at(-1).kv_used_bytes ?? null,
  };
}

/** One fork for each lane that leaves lane 0, in the order of the lanes. */
export function forks(lanes) {
  return lanes.slice(1)
    .map((lane) => ({ lane, step: divergence(lanes[0], lane) }))
    .filter((fork) => fork.step !== null);
}

/** How `lane` stands at `step` of the reference: "together", "elsewhere" or "ended". */
export function standing(lanes, lane, step) {
  const left = lane.index === 0 ? null : divergence(lanes[0], lane);
  if (left !== null && left < step) return "elsewhere";
  return lane.steps[step] ? "together" : "ended";
}

function distinctPairs(ids) {
  if (ids.length < 2) return null;
  const pairs = ids.slice(1).map((id, i) => `${ids[i]},${id}`);
  return new Set(pairs).size / pairs.length;
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
