// The settings of a lane in words, and the names of the stages that acted.

/** `T 0.7, top-p 0.9, seed 5`; the same abbreviations in every language, as core/decoding.describe. */
export function describe(words, lane) {
  const d = lane.decoding;
  const parts = lane.greedy ? [words.say("settings.greedy")] : [`T ${d.temperature}`];
  if (!lane.greedy) {
    if (d.top_k > 0) parts.push(`top-k ${d.top_k}`);
    if (d.top_p < 1) parts.push(`top-p ${d.top_p}`);
    if (d.min_p > 0) parts.push(`min-p ${d.min_p}`);
    if (d.typical_p < 1) parts.push(`typical-p ${d.typical_p}`);
  }
  if ((d.repetition_penalty ?? 1) !== 1) {
    const name = `${words.say("stages.repetition_penalty")} ${d.repetition_penalty}`;
    parts.push(d.penalty_scope === "output" ? words.say("settings.penalty_answer", { name }) : name);
  }
  const order = lane.greedy ? null : otherOrder(d);
  if (order) parts.push(`${words.say("settings.order")} ${order.map((name) => stageName(words, name)).join(" > ")}`);
  if (!lane.greedy && d.seed !== null && d.seed !== undefined) parts.push(`${words.say("settings.seed")} ${d.seed}`);
  return parts.join(", ");
}

/** What switches each stage off, in transformers' order, as core/stages. */
const OFF = { repetition_penalty: 1, temperature: 1, top_k: 0, top_p: 1, min_p: 0, typical_p: 1 };

/** The stages that act, where they do so in another order than transformers'; null else. */
function otherOrder(d) {
  const usual = Object.keys(OFF).filter((name) => (d[name] ?? OFF[name]) !== OFF[name]);
  const order = (Array.isArray(d.order) ? d.order : usual).filter((name) => usual.includes(name));
  return order.join() === usual.join() || order.length < usual.length ? null : order;
}

/** The name of a stage without its value: `top-p`. */
export function stageName(words, name) {
  return words.has(`stages.${name}`) ? words.say(`stages.${name}`) : String(name).replaceAll("_", "-");
}

/** The name of a stage with the lane's value: `top-p 0.9`. */
export function stageWithValue(words, name, decoding) {
  const value = decoding?.[name];
  const label = stageName(words, name);
  return value === undefined || value === null ? label : `${label} ${value}`;
}

/** The name by which a lane is called: its own, that of its preset, or run A, B, C. */
export function laneName(words, lane) {
  const letter = String.fromCharCode(65 + (lane.index % 26));
  const { name } = lane.decoding;
  if (!name) return words.say("compare.run", { letter });
  return words.has(`presets.${name}`) ? words.say(`presets.${name}`) : name;
}
