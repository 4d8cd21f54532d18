// A few lines of Python with transformers that compute a number of a run again, from its token ids.
//
// What a run holds is untrusted: numbers are checked, and text goes in as an ASCII literal only, so that
// nothing of it can become code. Knows no page.

const DTYPES = ["float32", "bfloat16", "float16"];
const DTYPES_SMALL = ["int8"];
const COMMIT = /^[0-9a-f]{40}$/;
const IDS_A_LINE = 16;

const STAGES = {
  repetition_penalty: (d, prompt) => ["RepetitionPenaltyLogitsProcessor", `${decimal(d.repetition_penalty)}${d.penalty_scope === "output" ? `, prompt_ignore_length=${prompt}` : ""}`],
  temperature: (d) => ["TemperatureLogitsWarper", decimal(d.temperature)],
  top_k: (d) => ["TopKLogitsWarper", whole(d.top_k)],
  top_p: (d) => ["TopPLogitsWarper", decimal(d.top_p)],
  min_p: (d) => ["MinPLogitsWarper", decimal(d.min_p)],
  typical_p: (d) => ["TypicalLogitsWarper", decimal(d.typical_p)],
};

/** The lines that compute number `key` at the step under the cursor again. */
export function recompute(key, { run, lane, cursor }) {
  const step = lane.steps[cursor];
  if (key === "decode" || key === "ttft") return clocked(key, run, lane);
  const ids = [...run.started.prompt.map(([id]) => id), ...lane.ids.slice(0, cursor)];
  const given = `ids = [${list(ids)}]\ntokens = torch.tensor([ids], device=model.device)\n`;
  if (key === "kv") return `${load(run)}\n${given}\n${CACHE}`;
  const token = `token = ${whole(step.token.id)}  # ${literal(step.token.text)}\n`;
  const forward = `with torch.inference_mode():\n    logits = model(tokens).logits[0, -1].double()\n`;
  const staged = key === "processed" || key === "kept_mass";
  const stages = staged && step.origin !== "argmax" ? pipeline(step, lane, run.started.prompt.length) : null;
  return `${load(run, stages?.names)}\n${given}${token}${forward}${stages?.lines ?? ""}\n${ANSWERS[key](stages, step)}\n`;
}

const ANSWERS = {
  raw: () => "print(logits.softmax(-1)[token].item())",
  surprisal: () => "print(-logits.log_softmax(-1)[token].item() / 0.6931471805599453)  # nats to bits",
  entropy: () => "print(torch.special.entr(logits.softmax(-1)).sum().item() / 0.6931471805599453)  # nats to bits",
  processed: (stages, step) => (stages ? `scores = stages(tokens, logits[None])[0]\nprint(scores.softmax(-1)[token].item())`
    : step.origin === "argmax" ? "print(float(logits.argmax() == token))" : "print(logits.softmax(-1)[token].item())"),
  kept_mass: (stages, step) => (stages ? MASS : step.origin === "argmax" ? "print(logits.softmax(-1)[token].item())" : "print(1.0)"),
};

const MASS = `mass, scores = 1.0, logits[None]
for stage in stages:
    before, scores = scores, stage(tokens, scores)
    mass *= before.softmax(-1)[scores > -torch.inf].sum().item()
print(mass)`;

const CACHE = `with torch.inference_mode():
    out = model(tokens, use_cache=True)
cache = out.get("cache", out.get("past_key_values"))  # transformers renamed it in 5.24
parts = [part for layer in cache.layers for part in (layer.keys, layer.values)]
print(sum(part.numel() * part.element_size() for part in parts))
`;

function clocked(key, run, lane) {
  const prompt = list(run.started.prompt.map(([id]) => id));
  const n = Math.max(2, lane.steps.length);
  const answer = key === "ttft" ? "print(seconds(1))" : `n = ${n}\nprint((n - 1) / (seconds(n) - seconds(1)))`;
  return `from time import perf_counter

${load(run)}
tokens = torch.tensor([[${prompt}]], device=model.device)


def seconds(n):
    start = perf_counter()
    model.generate(tokens, max_new_tokens=n, min_new_tokens=n, do_sample=False)
    return perf_counter() - start


seconds(2)  # warm-up
${answer}
`;
}

function load(run, names = []) {
  const { name, revision, dtype, weights } = run.model;
  const pinned = COMMIT.test(revision ?? "") ? `, revision="${revision}"` : "";
  const folder = pinned ? "" : "  # or its folder, which `first-token models list` shows\n";
  return `import torch
from transformers import ${["AutoModelForCausalLM", ...names].join(", ")}

name = ${literal(String(name ?? ""))}${folder || "\n"}model = AutoModelForCausalLM.from_pretrained(name${pinned}, dtype=torch.${DTYPES.includes(dtype) ? dtype : "float32"})
${weights ? `# The run had its matrices in ${DTYPES_SMALL.includes(weights) ? weights : "fewer bits"}: its numbers are near these, not the same.\n` : ""}`;
}

/** The stages that acted at this step, in their order. */
function pipeline(step, lane, prompt) {
  const made = (step.stages ?? []).filter(({ name }) => Object.hasOwn(STAGES, name)).map(({ name }) => STAGES[name](lane.decoding, prompt));
  if (!made.length) return null;
  const calls = made.map(([name, values]) => `${name}(${values})`).join(", ");
  return { names: ["LogitsProcessorList", ...made.map(([name]) => name)], lines: `stages = LogitsProcessorList([${calls}])\n` };
}

function list(ids) {
  const lines = [];
  for (let i = 0; i < ids.length; i += IDS_A_LINE) lines.push(ids.slice(i, i + IDS_A_LINE).map(whole).join(", "));
  return lines.join(",\n       ");
}

const number = (value) => (Number.isFinite(value) ? String(value) : "1.0");
const whole = (value) => (Number.isSafeInteger(value) ? String(value) : "0");
const decimal = (value) => (Number.isInteger(value) ? `${value}.0` : number(value));

/** Text as a Python literal of plain ASCII. */
function literal(text) {
  return JSON.stringify(text.slice(0, 200)).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
