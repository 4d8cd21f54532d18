// What a server's answer does not determine, in sentences: bounds, approximations, and whose numbers these are.

import { count, rate } from "./numbers.js";

/** Whether the step was computed by a server, which tells no logits. */
export const remote = (step) => step.logsumexp === null;

/** The sentences that belong to a step, empty for one of this machine. */
export function limits(step, words) {
  if (!remote(step)) return [];
  const inexact = step.inexact ?? [];
  const n = count(step.candidates.length), bits = rate(step.raw_entropy_bits);
  const said = [words.say(`server.${step.distribution ?? "raw"}`, { n })];
  if (inexact.includes("raw_rank")) said.push(words.say("server.rank"));
  if (inexact.includes("raw_entropy_bits")) said.push(words.say("server.entropy", { bits }));
  if (inexact.includes("processed_probability")) said.push(words.say("server.approximate"));
  return said;
}

/** How full the server's own cache was, and why this run's bytes are predicted only. */
export function serverCache(at, words) {
  if (at.kv_used_bytes !== null || at.server_kv_share === undefined) return "";
  if (at.server_kv_share === null) return words.say("server.cache_unknown");
  return words.say("server.cache", { share: `${(at.server_kv_share * 100).toPrecision(2)} %` });
}
