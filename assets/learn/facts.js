// The numbers that the text of the chapters names: where each stands in the material, and how it is written.

import { bytes, count, duration, percent, rate } from "../stage/numbers.js";

/** Bytes to the byte. */
export const exact = (n) => `${count(n)} B`;

const perSecond = (n) => `${(n / 1e9).toLocaleString("en-US", { maximumSignificantDigits: 3 })} GB`;

const piece = (m, text) => m.lesson.pieces.find((one) => one.text === text)?.tokens ?? [];
const ids = (tokens) => tokens.map(([id]) => count(id)).join(" + ");
const fact = (name) => (m) => m.main.facts[name];
const heads = (m) => m.lesson.cache.token.kv_heads;

export const FACTS = {
  vocabulary: [fact("vocabulary"), count],
  prompt_tokens: [fact("prompt_tokens"), count],
  prompt_more: [(m) => m.main.run.lanes[0].steps[1].position, count],
  last_read: [fact("cache_tokens"), count],
  new_tokens: [fact("new_tokens"), count],
  id_bare: [(m) => ids(piece(m, "gravity")), String],
  id_spaced: [(m) => ids(piece(m, " gravity")), String],
  prefill_time: [fact("prefill_seconds"), duration],
  decode_passes: [(m) => m.main.run.lanes[0].steps.at(-1).step, count],
  gap: [fact("gap_seconds"), duration],
  pairs_50: [(m) => m.pairs(50), count],
  pairs_32000: [(m) => m.pairs(32000), count],
  read: [fact("step_read_bytes"), bytes],
  read_rate: [fact("read_bytes_per_second"), bytes],
  first: [fact("first_token_seconds"), duration],
  total: [fact("total_seconds"), duration],
  example_forwards: [(m) => m.lesson.example.forwards, count],
  ceiling_model: [(m) => m.lesson.cache.model, String],
  ceiling_device: [(m) => m.lesson.ceiling.device, String],
  ceiling_reading: [(m) => m.lesson.ceiling.reading_seconds, duration],
  ceiling_computing: [(m) => m.lesson.ceiling.computing_seconds, duration],
  kv_with: [(m) => m.saved(1000).cached.kv_computed, count],
  kv_without: [(m) => m.saved(1000).uncached.kv_computed, count],
  dots_with: [(m) => m.saved(1000).cached.attention_dot_products_computed, count],
  cache_model: [(m) => m.lesson.cache.model, String],
  layers: [(m) => m.lesson.cache.token.layers, count],
  heads: [heads, count],
  query_heads: [(m) => m.lesson.cache.query_heads, count],
  dim: [(m) => m.lesson.cache.token.head_dim, count],
  size: [(m) => m.lesson.cache.bytes_per_number, count],
  key_bytes: [(m) => m.lesson.cache.token.key_bytes, exact],
  head_bytes: [(m) => m.lesson.cache.token.head_bytes, exact],
  layer_bytes: [(m) => m.lesson.cache.token.layer_bytes, exact],
  token_bytes: [(m) => m.lesson.cache.token.all_layers_bytes, exact],
  cache_4096: [(m) => m.cell(4096, 1, heads(m)).bytes, bytes],
  cache_128000: [(m) => m.cell(128000, 1, heads(m)).bytes, bytes],
  cache_32: [(m) => m.cell(4096, 32, heads(m)).bytes, bytes],
  cache_weights: [(m) => m.lesson.cache.weights_bytes, bytes],
};

export { bytes, count, duration, percent, perSecond, rate };
