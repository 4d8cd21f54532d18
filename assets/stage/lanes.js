// Comparing lanes of one prompt: where each leaves the reference, and its measures. Arithmetic only.

import { surprisal, timing } from "./run.js";

/** How far two lanes were found to be the same: they only grow, so each step is compared once. */
const compared = new WeakMap();

/** The first step at which `lane` is not what `reference` is; null while they say the same. */
export function divergence(reference, lane) {
  const both = Math.min(reference.steps.length, lane.steps.length);
  if (!compared.has(lane)) compared.set(lane, new WeakMap());
  const known = compared.get(lane);
  let i = known.get(reference) ?? 0;
  while (i < both && reference.steps[i].token.id === lane.steps[i].token.id) i += 1;
  known.set(reference, i);
  if (i < both) return i;
  if (reference.done && lane.steps.length > both) return both;
  if (lane.done && reference.steps.length > both) return both;
  return null;
}

const REPEATED_GRAM = 4;

/** Measures of a lane, as core/metrics.measures; null where there is nothing to measure yet. */
export function measures(run, lane) {
  const { steps, ids } = lane;
  const bits = mean(steps.map(surprisal));
  const repeated = distinct(ids, REPEATED_GRAM);
  return {
    mean_surprisal_bits: bits,
    perplexity: power(bits),
    mean_entropy_bits: mean(steps.map((step) => step.raw_entropy_bits)),
    mean_kept_mass: mean(steps.map((step) => step.kept_mass)),
    effective_choices: power(mean(steps.map((step) => step.processed_entropy_bits))),
    distinct_1: distinct(ids, 1),
    distinct_2: distinct(ids, 2),
    repeated_share: repeated === null ? null : 1 - repeated,
    tokens: steps.length,
    seconds: steps.at(-1)?.end_seconds ?? null,
    decode_tokens_per_second: timing(run, lane).decodeRate,
    kv_used_bytes: steps.at(-1)?.kv_used_bytes ?? null,
    finish_reason: lane.reason,
  };
}

/** One fork for each lane that leaves the reference, in the order of the lanes. */
export function forks(lanes, reference = lanes[0]) {
  return lanes.filter((lane) => lane !== reference)
    .map((lane) => ({ lane, step: divergence(reference, lane) }))
    .filter((fork) => fork.step !== null);
}

/** How `lane` stands at `step` of `anchor`: "together" (the same text before it), "elsewhere" or "ended". */
export function standing(anchor, lane, step) {
  const left = lane === anchor ? null : divergence(anchor, lane);
  if (left !== null && left < step) return "elsewhere";
  return lane.steps[step] ? "together" : "ended";
}

function distinct(ids, n) {
  if (ids.length < n) return null;
  const grams = ids.slice(n - 1).map((_, i) => ids.slice(i, i + n).join());
  return new Set(grams).size / grams.length;
}

const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);

const power = (bits) => (bits === null || bits >= 1024 ? null : 2 ** bits);
