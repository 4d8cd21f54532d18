// A text as the tokens that it is cut into, one a row: id, rank, both probabilities, and those along the path.

import { box, make, setAttributes } from "./dom.js";
import { visible } from "./marks.js";
import { count, percent } from "./numbers.js";
import { readToken } from "./run.js";

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const UNKNOWN = "…";
const MOST = 60;

export class TextPath {
  constructor(scene) {
    this.scene = scene;
    this.node = setAttributes(make("div", "ft-text-rows"), { role: "list" });
    this.shown = null;
  }

  /** Show `tokens`, each {token, rank, logprob, processed_probability}; what is not known yet is left out of it. */
  show(tokens, figures) {
    if (tokens === this.shown) return;
    this.shown = tokens;
    let [model, after] = [0, 1];
    this.node.replaceChildren(this.#head(), ...tokens.slice(0, MOST).map((one) => {
      model += one.logprob ?? NaN;
      after *= one.processed_probability ?? NaN;
      return Number.isNaN(model) ? this.#piece(one) : this.#row(one, model, after, figures);
    }));
  }

  clear() {
    this.shown = null;
    this.node.replaceChildren();
  }

  #head() {
    const { words } = this.scene;
    const cells = ["odds.token", "odds.rank", "candidates.raw", "candidates.processed", "odds.path"];
    return box("ft-text-row ft-head", ...cells.map((key, i) => make("span", i ? "ft-number" : "", words.say(key))));
  }

  #name([id, ...token]) {
    const name = make("span", "ft-name", visible(readToken([id, ...token])));
    name.append(make("small", "ft-id", String(id)));
    return name;
  }

  #piece({ token }) {
    const cells = Array.from({ length: 4 }, () => make("span", "ft-number", UNKNOWN));
    return setAttributes(box("ft-text-row", this.#name(token), ...cells), {
      role: "listitem", "data-id": token[0],
      "aria-label": this.scene.words.say("odds.piece", { token: visible(readToken(token)), id: token[0] }),
    });
  }

  #row({ token, rank, logprob, processed_probability: after }, path, pathAfter, figures) {
    const { words } = this.scene;
    const model = small(Math.exp(logprob), logprob, figures);
    const product = small(Math.exp(path), path, figures);
    return setAttributes(box("ft-text-row", this.#name(token), make("span", "ft-number", count(rank)),
      make("span", "ft-number", model), make("b", "ft-number", percent(after, figures)), make("span", "ft-number", product)), {
      role: "listitem", "data-id": token[0], "data-rank": rank, "data-logprob": logprob, "data-after": after,
      "aria-label": words.say("odds.row", {
        token: visible(readToken(token)), rank: count(rank), model, settings: percent(after, figures), path: product,
        after: percent(pathAfter, figures),
      }),
    });
  }
}

/** A text with its outer spaces to be seen. */
export const outer = (text) => text.replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length)).replace(/[\u0000-\u001f\u007f]/g, (c) => visible({ text: c, bytes: "", special: false }));

/** A probability that may be tiny: below a hundredth of a per cent as 3.2 × 10⁻⁷. */
export function small(p, logprob, figures) {
  if (p >= 1e-4) return percent(p, figures);
  const power = Math.floor(logprob / Math.LN10);
  const times = (10 ** (logprob / Math.LN10 - power)).toFixed(1);
  return `${times}\u2009×\u200910⁻${[...String(-power)].map((digit) => RAISED[digit]).join("")}`;
}
