// How each number of a step comes about: its formula, the same with this run's values, and the result again.
//
// Arithmetic on the record only; knows no page. A proof is { shown, measured, formula, lines, note }: lines of
// mathematics that are the same in every language, and the key and values of a sentence beside them.

import { ranked } from "./choices.js";
import { bytes, count, duration, percent, rate, significant } from "./numbers.js";
import { surprisal, timing } from "./run.js";

export const NUMBERS = ["raw", "processed", "surprisal", "entropy", "kept_mass", "kv", "decode", "ttft"];

const TERMS_SHOWN = 3;
const LN2 = Math.log(2);

/**
 * The proof of number `key` at the step under the cursor; null where the run does not have it.
 * `say(unit, n)` writes a number with its unit.
 */
export function prove(key, { run, lane, cursor }, say) {
  const step = lane?.steps[cursor];
  return step ? PROOFS[key](step, lane, run, say) : null;
}

const figure = (value, figures = 4) => significant(value, figures);
const pass = (p, run) => percent(p, run.figures);

const PROOFS = {
  raw(step, lane, run) {
    const p = Math.exp(step.raw_logprob);
    if (step.logsumexp === null) {
      return { shown: pass(p, run), formula: "p = exp(log p)", lines: [`exp(${figure(step.raw_logprob)})`, pass(p, run)], note: "raw_server", values: {} };
    }
    const z = step.raw_logprob + step.logsumexp;
    return {
      shown: pass(p, run), formula: "p = exp(z − log Σ exp zⱼ)",
      lines: [`exp(${figure(z)} − ${figure(step.logsumexp)})`, `exp(${figure(step.raw_logprob)})`, pass(p, run)],
      note: "raw", values: { vocabulary: count(run.model.vocabulary) },
    };
  },

  processed(step, lane, run) {
    const shown = pass(step.processed_probability, run);
    if (step.origin === "argmax") return { shown, formula: "q = 1", lines: [], note: "greedy", values: {} };
    const { temperature: T = 1, repetition_penalty: penalty = 1 } = lane.decoding;
    const kept = ranked(step).filter((row) => row.processed > 0);
    const values = { n: count(step.kept_count), m: count(kept.length) };
    if (penalty !== 1) return { shown, formula: FORMULA_Q, lines: [], note: "penalty", values };
    if (kept.length < step.kept_count) return { shown, formula: FORMULA_Q, lines: [], note: "not_recorded", values };
    const weight = (p) => p ** (1 / T);
    const own = weight(Math.exp(step.raw_logprob));
    const whole = kept.reduce((sum, row) => sum + weight(row.raw), 0);
    const power = T === 1 ? "" : `^(1/${T})`;
    return {
      shown, formula: T === 1 ? "q = p / Σ pⱼ" : FORMULA_Q, note: "kept", values,
      lines: [
        `${figure(Math.exp(step.raw_logprob))}${power} / (${summands(kept.map((row) => `${figure(row.raw)}${power}`))})`,
        `${figure(own)} / ${figure(whole)}`, pass(own / whole, run),
      ],
    };
  },

  surprisal(step, lane, run, say) {
    const bits = surprisal(step);
    return {
      shown: say("bits", rate(bits)), formula: "s = −log₂ p",
      lines: [`−log₂ ${figure(Math.exp(step.raw_logprob))}`, `${figure(-step.raw_logprob)} / ${figure(LN2)}`, say("bits", figure(bits, 3))],
      note: "surprisal", values: {},
    };
  },

  entropy(step, lane, run, say) {
    const rows = ranked(step);
    const part = rows.reduce((sum, row) => sum + (row.raw > 0 ? -row.raw * Math.log2(row.raw) : 0), 0);
    const bits = step.raw_entropy_bits;
    return {
      shown: say("bits", rate(bits)), formula: "H = −Σ pⱼ log₂ pⱼ",
      lines: [`${figure(part)} + ${figure(Math.max(0, bits - part))}`, say("bits", figure(bits, 3))],
      note: "entropy", values: { m: count(rows.length), n: count(Math.max(0, run.model.vocabulary - rows.length)), after: rate(step.processed_entropy_bits) },
    };
  },

  kept_mass(step, lane, run) {
    const stages = step.stages ?? [];
    let before = 1;
    const shares = stages.map(({ kept_mass: mass }) => {
      const share = before > 0 ? mass / before : 0;
      before = mass;
      return percent(share, 4);
    });
    return {
      shown: percent(step.kept_mass, run.figures), formula: "m = m₁ · m₂ · …,   mᵢ = Σ pⱼ",
      lines: shares.length > 1 ? [shares.join(" · "), percent(step.kept_mass, run.figures)] : [percent(step.kept_mass, run.figures)],
      note: "kept_mass", values: { n: count(step.kept_count), vocabulary: count(run.model.vocabulary) }, stages: stages.map(({ name }) => name),
    };
  },

  kv(step, lane, run) {
    const { kv_formula: factors, kv_bytes_per_token: each } = run.model;
    const used = step.kv_used_bytes ?? null;
    const tokens = step.kv_tokens;
    const values = { tokens: count(tokens), measured: used === null ? "–" : `${count(used)} B`, predicted: step.kv_predicted_bytes == null ? "–" : `${count(step.kv_predicted_bytes)} B` };
    const measured = used !== null;
    const shown = bytes(used ?? step.kv_predicted_bytes);
    if (!factors && !each) return { shown, measured, formula: "", lines: [], note: "kv_unknown", values };
    const product = factors ? factors[0] * 2 * factors[1] * factors[2] * factors[3] : each;
    const lines = factors
      ? [`${count(factors[0])} · 2 · ${count(factors[1])} · ${count(factors[2])} · ${factors[3]} B · ${count(tokens)}`]
      : [`${count(each)} B · ${count(tokens)}`];
    return {
      shown, measured, note: factors ? "kv" : "kv_mixed", values,
      formula: factors ? "L · 2 · h · d · b · t" : "B · t",
      lines: [...lines, `${count(product * tokens)} B`, bytes(product * tokens)],
    };
  },

  decode(step, lane, run, say) {
    const ends = lane.steps.map((one) => one.end_seconds);
    const { decodeRate } = timing(run, lane);
    if (decodeRate === null) return null;
    return {
      shown: say("rate", rate(decodeRate)), measured: true, formula: "(n − 1) / (tₙ − t₁)",
      lines: [
        `(${count(ends.length)} − 1) / (${figure(ends.at(-1))} s − ${figure(ends[0])} s)`,
        `${count(ends.length - 1)} / ${figure(ends.at(-1) - ends[0])} s`, say("rate", rate(decodeRate)),
      ],
      note: "decode", values: { n: count(ends.length) },
    };
  },

  ttft(step, lane, run) {
    const first = lane.steps[0];
    const filled = run.prefilled;
    const prefill = filled.end_seconds - filled.start_seconds;
    const rest = Math.max(0, first.end_seconds - prefill);
    return {
      shown: duration(first.end_seconds), measured: true, formula: "t₁ − t₀",
      lines: [`${duration(prefill)} + ${duration(rest)}`, duration(first.end_seconds)],
      note: "ttft", values: { n: count(filled.tokens_computed) },
    };
  },
};

const FORMULA_Q = "q = p^(1/T) / Σ pⱼ^(1/T)";

/** A long sum by its first terms. */
function summands(terms) {
  if (terms.length <= TERMS_SHOWN + 1) return terms.join(" + ");
  return `${terms.slice(0, TERMS_SHOWN).join(" + ")} + … (n = ${terms.length})`;
}
