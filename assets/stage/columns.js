// Steps as columns of a chart: one each, or several together where there are many. Arithmetic only.

import { shade, surprisal } from "./run.js";

const LEAST_COLUMNS = 24;
const FIRST_ROOM = 32;

/** How many steps the x axis has room for: exact once the lane has ended, else doubling. */
export function room(lane) {
  const n = lane.steps.length;
  if (lane.done) return Math.max(n, LEAST_COLUMNS);
  const most = lane.decoding.max_new_tokens ?? Infinity;
  let size = FIRST_ROOM;
  while (size < n) size *= 2;
  return Math.max(n, Math.min(size, Math.max(most, LEAST_COLUMNS)));
}

/**
 * Columns for `steps`, `each` steps a column: mean surprisal, entropy and time, cache at the column's
 * end. The first column of a run of single steps carries no time of its own (the prefill's is apart).
 */
export function columns(steps, each) {
  const out = [];
  for (let from = 0; from < steps.length; from += each) {
    const part = steps.slice(from, from + each);
    const bits = mean(part.map(surprisal));
    const seconds = part.map((step, i) => gap(steps, from + i)).filter((x) => x !== null);
    out.push({
      from, bits, level: shade(bits),
      entropy: mean(part.map((step) => step.raw_entropy_bits)),
      seconds: seconds.length ? mean(seconds) : null,
      used: part.at(-1).kv_used_bytes ?? null,
    });
  }
  return out;
}

/** Seconds from the token before to this one; null for the first. */
export const gap = (steps, i) => (i > 0 ? steps[i].end_seconds - steps[i - 1].end_seconds : null);

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
