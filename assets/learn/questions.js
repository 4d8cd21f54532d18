// The questions, one a chapter: what is asked, the answers, and why each is right or wrong. Every number in them
// comes from the material.

import { plain, spacedBytes, visible } from "../stage/marks.js";
import { bytes, count, percent, rate, significant } from "../stage/numbers.js";
import { readToken } from "../stage/run.js";
import { perSecond } from "./facts.js";

const EMOJI = "😊";
const WARM = [0.3, 0.7, 2];
const ASKED_T = 2;

const counts = (numbers, right) => [...new Set(numbers)].sort((a, b) => a - b)
  .map((n) => ({ label: count(n), right: n === right }));

/** Each makes {ask, options: [{label, right, why}], why} or {ask, number, why, near} from words and material. */
export const QUESTIONS = [tokens, temperature, guess, forwards, ceiling, pairs, weight, setting, task];

function tokens(words, m) {
  const { text, tokens: found } = m.lesson.pieces.find((piece) => piece.text === EMOJI);
  const all = found.map(readToken);
  const hex = all.map((token) => spacedBytes(token.bytes)).join(" | ");
  return {
    ask: words.say("c1.q", { text }), why: words.say("c1.why", { n: count(all.length), hex }),
    options: [...new Set([1, 2, 4, all.length])].sort((a, b) => a - b).map((n) => ({
      label: words.many("c1.tokens", n, count(n)), right: n === all.length,
    })),
  };
}

function temperature(words, m) {
  const tables = m.softmax.tables.filter(({ temperature: t }) => WARM.includes(t));
  const shares = ({ rows }) => rows.slice(0, 3).map((row) => percent(row.probability));
  const asked = tables.find(({ temperature: t }) => t === ASKED_T);
  const [first, second, third] = shares(asked);
  const [low, , high] = tables;
  return {
    ask: words.say("c2.q", { first, second, third }),
    options: tables.map(({ temperature: t }) => ({ label: `T = ${t}`, right: t === ASKED_T })),
    why: words.say("c2.why", {
      t: ASKED_T, first, second, third, low: low.temperature, high: high.temperature,
      best_low: shares(low)[0], best_high: shares(high)[0],
    }),
  };
}

function guess(words, m) {
  const { run, facts } = m.main.facts.guess ? m.main : { ...m.recorded.main, facts: m.lesson.facts };
  const { step: at, options, best, best_bits: bestBits, drawn_bits: drawnBits } = facts.guess;
  const step = run.lanes[0].steps[at];
  const named = new Map(step.candidates.map(([token]) => [token[0], visible(readToken(token))]));
  const before = [...run.started.prompt.map((wire) => readToken(wire).text), ...run.lanes[0].steps.slice(0, at).map(({ text }) => text)];
  return {
    ask: words.say("c3.q"), context: before.join("").trimStart().slice(-240), note: m.main.facts.guess ? "" : words.say("c3.none"),
    options: options.map(({ id, probability, bits }) => ({
      label: named.get(id), right: id === best,
      why: words.say(id === best ? "c3.why_best" : "c3.why", {
        token: named.get(id), bits: rate(bits), p: percent(probability), best: named.get(best), best_bits: rate(bestBits),
        drawn: visible(step.token), drawn_bits: rate(drawnBits),
      }),
    })),
  };
}

function forwards(words, m) {
  const { prompt, answer, forwards: all, decode, sum } = m.lesson.example;
  return {
    ask: words.say("c4.q", { prompt: count(prompt), answer: count(answer) }),
    options: counts([1, prompt, all, sum], all),
    why: words.say("c4.why", { forwards: count(all), decode: count(decode) }),
  };
}

function ceiling(words, m) {
  const { weights_bytes: weights, bytes_per_second: speed, tokens_per_second: right, tokens_per_second_computing: computing, device } = m.lesson.ceiling;
  const values = {
    model: m.lesson.cache.model, device, weights: bytes(weights), bandwidth: perSecond(speed),
    n: significant(right), computing: significant(computing),
  };
  return {
    ask: words.say("c5.q", values), why: words.say("c5.why", values),
    options: [right / 10, right, computing].map((n) => ({ label: words.say("c5.per", { n: significant(n) }), right: n === right })),
  };
}

function pairs(words, m) {
  const { n, cached, uncached } = m.saved(1000);
  const right = cached.attention_dot_products_computed;
  return {
    ask: words.say("c6.q"), options: counts([n, right, uncached.attention_dot_products_computed], right),
    why: words.say("c6.why", {
      dots: count(right), without: count(uncached.kv_computed), with: count(cached.kv_computed),
      again: count(uncached.attention_dot_products_computed),
    }),
  };
}

function weight(words, m) {
  const known = m.main.facts.formula ? m.main : { ...m.recorded.main, facts: m.lesson.facts };
  const [layers, heads, dim, size] = known.facts.formula;
  const each = known.facts.bytes_per_token;
  const values = { model: plain(known.run.model.name), layers, heads, dim, size, bytes: `${count(each)} B` };
  return {
    ask: words.say("c7.q", values), number: each, why: words.say("c7.why", values),
    near: [{ number: each / 2, why: words.say("c7.why_half", values) }],
  };
}

function setting(words, m) {
  const { run } = m.recorded.mystery;
  const [lane] = run.lanes;
  return {
    ask: words.say("c8.q"), context: lane.finished.text.trimStart(),
    options: ["greedy", "balanced", "wild"].map((name) => ({ label: words.say(`lane.${name}`), right: name === lane.decoding.name })),
    why: words.say("c8.why", { n: count(lane.steps.length), bits: rate(m.lesson.means.mystery[0]) }),
  };
}

function task(words, m) {
  const named = (name) => (name === "greedy" ? words.say("lane.greedy") : m.lesson.settings[name].text);
  return {
    ask: words.say("c9.q"), why: words.say("c9.why"),
    options: ["greedy", "balanced", "wild"].map((name) => ({ label: named(name), right: name === "greedy" })),
  };
}
