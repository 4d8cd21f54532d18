// The KV cache card: measured bytes first, a brick a cached token, then the arithmetic beside it.

import { box, make, region, setAttributes, setText } from "./dom.js";
import { bytes, count, percent } from "./numbers.js";
import { provable } from "./provable.js";
import { serverCache } from "./remote.js";
import { Wall } from "./wall.js";
import { Sentence } from "./words.js";

const LEAST_SEEN = 0.008;

export class Memory {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.figure = provable(scene, "kv");
    this.figure.title = `${words.say("memory.measured")}. ${words.say("prove.open")}`;
    this.wall = new Wall(scene);
    this.what = new Sentence(make("span"), words, glossary.term);
    this.verdict = new Sentence(make("span", "ft-verdict"), words, glossary.term);
    this.story = make("p", "ft-why");
    this.story.append(this.what.node, words.say("memory.join"), this.verdict.node);
    this.apart = new Sentence(make("span"), words, glossary.term);
    this.reasons = make("span");
    this.aside = make("p", "ft-quiet ft-aside");
    this.aside.append(this.apart.node, words.say("memory.join"), this.reasons);
    this.share = new Sentence(make("p", "ft-quiet"), words, glossary.term);
    this.server = make("p", "ft-quiet ft-server");
    this.kept = new Sentence(make("p", "ft-quiet ft-kept"), words, glossary.term);
    this.weights = make("p", "ft-quiet ft-weights");
    this.gauge = box("ft-gauge", make("i"));
    this.gauge.setAttribute("role", "meter");
    const title = make("h2", "ft-title");
    title.append(...new Sentence(make("span"), words, glossary.term).show("memory.title").childNodes);
    this.node = region(words.say("region.memory"), "ft-card-memory");
    this.node.append(
      title, box("ft-big", this.figure), this.wall.node, this.story, this.aside, this.server, this.gauge, this.share.node, this.kept.node,
      this.weights,
    );
    this.reset();
  }

  reset() {
    this.wall.reset();
    this.node.classList.add("ft-blank");
    setText(this.figure, "");
  }

  paint({ run, lane, cursor, steering }) {
    this.#keep(steering?.kept ?? null);
    const at = lane?.steps[cursor] ?? run.prefilled;
    if (!at) return;
    this.node.classList.remove("ft-blank");
    const state = measure(run, at);
    setText(this.figure, state.used === null ? this.scene.words.say("memory.unknown") : bytes(state.used));
    setAttributes(this.node, {
      "data-tokens": state.tokens, "data-used": state.used ?? "", "data-allocated": state.allocated ?? "",
      "data-predicted": state.predicted ?? "", "data-state": state.constant ?? "",
    });
    this.wall.show(state.prompt, state.tokens, expected(run, lane));
    this.#sentences(run, state, Boolean(lane?.steps[cursor]));
    this.#beside(run, state);
    const server = lane?.steps[cursor] ? serverCache(at, this.scene.words) : "";
    this.server.hidden = !server;
    setText(this.server, server);
    this.#context(run, state);
    this.#places(run.model.weights_places ?? []);
  }

  /** Where the weights lie, of a model that no device holds alone. */
  #places(places) {
    const { words } = this.scene;
    const said = places.map(([place, held]) => {
      const [kind, number] = place.split(":");
      return words.say(`memory.weights_in.${kind}`, { held: bytes(held), number });
    });
    this.weights.hidden = !said.length;
    setText(this.weights, said.length ? words.say("memory.weights", { places: said.join(words.say("memory.weights_join")) }) : "");
  }

  /** Caches of ended runs, kept so that they can go on without reading again. */
  #keep(kept) {
    this.kept.node.hidden = !kept;
    if (kept) this.kept.show("steer.kept", { held: bytes(kept.held_bytes), limit: bytes(kept.limit_bytes) });
  }

  /** What does not grow, and why a live cache differs from the arithmetic. */
  #beside(run, state) {
    const { words } = this.scene;
    if (state.constant || state.constantPredicted) {
      this.apart.show("memory.state", {
        measured: state.constant === null ? words.say("memory.unknown") : bytes(state.constant),
        predicted: bytes(state.constantPredicted),
      });
    } else this.apart.clear();
    const known = state.differs ? run.model.kv_reasons ?? [] : [];
    const say = ({ key, text }) => (words.has(`memory.reason.${key}`) ? words.say(`memory.reason.${key}`) : text);
    setText(this.reasons, known.map(say).join(words.say("memory.join")));
    this.aside.hidden = !known.length && !state.constant && !state.constantPredicted;
  }

  #sentences(run, state, chosen) {
    const formula = run.model.kv_formula;
    const values = {
      prompt: count(state.prompt), answer: count(state.tokens - state.prompt), each: bytes(state.each),
      layers: formula?.[0], heads: formula?.[1], dim: formula?.[2], size: formula?.[3],
    };
    const simple = state.each ? "memory.what" : "memory.what_plain";
    this.what.show(formula && state.each ? "memory.what_formula" : simple, values);
    const key = state.used === null || state.predicted === null ? "memory.unpredicted"
      : state.used === state.predicted ? "memory.equal" : "memory.differs";
    this.verdict.show(chosen ? key : `${key}_prefill`, {
      predicted: bytes(state.predicted), allocated: bytes(state.allocated),
    });
  }

  #context(run, state) {
    const { context, memory_bytes: memory, query_heads: heads, kv_formula: formula } = run.model;
    const part = context ? Math.min(1, state.tokens / context) : 0;
    this.gauge.hidden = !context;
    this.gauge.firstChild.style.transform = `scaleX(${part && Math.max(LEAST_SEEN, part)})`;
    const label = this.scene.words.say("memory.gauge", { part: percent(part, 2), context: count(context) });
    setAttributes(this.gauge, { "aria-label": label, "aria-valuenow": state.tokens, "aria-valuemin": 0, "aria-valuemax": context ?? 0 });
    const full = run.model.kv_context_bytes ?? state.each * context;
    if (!context || !state.each) return this.share.clear();
    const grouped = heads && formula && heads > formula[1] && state.predicted !== null;
    const key = `memory.share${memory ? "_device" : ""}${grouped ? "_mha" : ""}`;
    return this.share.show(key, {
      part: percent(part, 2), context: count(context), full: bytes(full),
      device: percent((state.used ?? state.predicted) / (memory || 1), 2), memory: bytes(memory), heads,
      mha: formula ? bytes((state.predicted * heads) / formula[1]) : "",
    });
  }
}

function measure(run, at) {
  const each = run.model.kv_bytes_per_token ?? null;
  const tokens = at.kv_tokens ?? 0;
  const used = at.kv_used_bytes ?? null, predicted = at.kv_predicted_bytes ?? null;
  const constant = at.kv_state_bytes ?? null, constantPredicted = run.model.kv_state_bytes ?? null;
  return {
    tokens, each, prompt: Math.min(tokens, run.promptTokens),
    used, predicted, allocated: at.kv_allocated_bytes ?? null, constant, constantPredicted,
    differs: (used !== null && used !== predicted) || (constant !== null && constant !== constantPredicted),
  };
}

/** Tokens that the cache will hold at the end: known once the lane has ended, else at most. */
function expected(run, lane) {
  if (!lane) return run.promptTokens;
  const steps = lane.done ? lane.steps.length : lane.decoding.max_new_tokens ?? lane.steps.length;
  return Math.min(run.promptTokens + Math.max(0, steps - 1), run.model.context ?? Infinity);
}
