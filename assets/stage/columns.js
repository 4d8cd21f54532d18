// Tokens as columns of a chart: one each, or several together where there are many. Arithmetic only.

import { remote } from "./remote.js";
import { shade, surprisal } from "./run.js";

const LEAST_COLUMNS = 24;
const FIRST_ROOM = 32;
const IMPOSSIBLE_BITS = 40;

/** How many steps the x axis has room for: exact once the lane has ended, else doubling. */
export function room(lane) {
  const n = lane.steps.length;
  if (lane.done) return Math.max(n, LEAST_COLUMNS);
  const most = lane.decoding.max_new_tokens ?? Infinity;
  let size = FIRST_ROOM;
  while (size < n) size *= 2;
  return Math.max(n, Math.min(size, Math.max(most, LEAST_COLUMNS)));
}

/** How many tokens a column holds: `prompt` of the prompt's and `each` of the answer's, `most` columns in all. */
export function grouping(prompt, steps, most) {
  const whole = prompt + steps <= most;
  const forPrompt = whole ? prompt : Math.max(1, Math.min(prompt, Math.floor(most / 3), most - Math.min(steps, Math.ceil((2 * most) / 3))));
  const each = Math.max(1, Math.ceil(steps / Math.max(1, most - forPrompt)));
  return { prompt: Math.max(1, Math.ceil(prompt / Math.max(1, forPrompt))), each };
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
      used: part.at(-1).kv_used_bytes ?? (remote(part.at(-1)) ? part.at(-1).kv_predicted_bytes : null) ?? null,
      predicted: remote(part.at(-1)),
    });
  }
  return out;
}

/** The same for a prompt of `count` tokens, of which `reading` tells what the model expected; null where it is unknown. */
export function promptColumns(reading, count, each) {
  return Array.from({ length: Math.ceil(count / each) }, (_, i) => {
    const part = (reading ?? []).slice(i * each, (i + 1) * each).filter((read) => read.rank !== null);
    if (!part.length) return { bits: null, entropy: null, level: 0 };
    const bits = mean(part.map(promptSurprisal));
    return { bits, level: shade(bits), entropy: mean(part.map((read) => read.entropy_bits)) };
  });
}

/** Bits of surprisal of a prompt's token; an impossible one counts as one in a trillion. */
export const promptSurprisal = ({ logprob }) => (logprob === null ? IMPOSSIBLE_BITS : Math.max(0, -logprob / Math.LN2));

/** Seconds from the token before to this one; null for the first. */
export const gap = (steps, i) => (i > 0 ? steps[i].end_seconds - steps[i - 1].end_seconds : null);

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
