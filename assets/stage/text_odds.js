// How probable any text would have been in the place of the token under the cursor, token by token.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { visible } from "./marks.js";
import { count, percent } from "./numbers.js";
import { readToken } from "./run.js";
import { sourceText } from "./what_if.js";

const LONGEST = 200;

export class TextOdds {
  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.asked = null;
    this.input = setAttributes(make("input", "ft-text-input"), {
      type: "text", maxlength: LONGEST, "aria-label": words.say("odds.name"), placeholder: words.say("odds.placeholder"), spellcheck: "false", autocomplete: "off",
    });
    this.input.addEventListener("input", () => this.#preview());
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.#ask();
    });
    this.go = button("ft-button", words.say("odds.ask"), () => this.#ask());
    this.typed = make("p", "ft-quiet ft-text-typed");
    this.said = make("p", "ft-why");
    this.said.setAttribute("aria-live", "polite");
    this.rows = setAttributes(make("div", "ft-text-rows"), { role: "list" });
    this.source = make("p", "ft-quiet");
    this.node = box("ft-text-odds", box("ft-text-line", this.input, this.go), this.typed, this.said, this.rows, this.source);
    this.#preview();
  }

  show({ run, lane, cursor }) {
    if (this.lane !== lane) this.asked = null;
    Object.assign(this, { run, lane, cursor });
    const { words, questions } = this.scene;
    const possible = questions.possible && run.done;
    this.input.disabled = !possible;
    this.go.disabled = !possible || !this.input.value;
    if (!possible) setText(this.said, words.say(questions.possible ? "what_if.later" : "what_if.alone"));
    else this.#answer();
  }

  #preview() {
    const { words } = this.scene;
    const text = this.input.value;
    this.go.disabled = !text;
    const hint = text && !/^\s/.test(text) ? ` ${words.say("odds.no_space")}` : "";
    setText(this.typed, text ? words.say("odds.typed", { text: outer(text) }) + hint : words.say("odds.hint"));
  }

  #ask() {
    if (!this.input.value || !this.lane) return;
    this.asked = this.input.value;
    this.#answer(0);
  }

  /** The text that was asked about stays asked about where the cursor goes. */
  #answer(patience) {
    const { words, questions } = this.scene;
    if (this.asked === null) {
      this.#clear(words.say("odds.waiting"));
      return;
    }
    const question = { what: "text", run: this.run.id, lane: this.lane.index, step: this.cursor, text: this.asked, key: this.asked };
    questions.ask(question, patience);
    const answer = questions.answer(question);
    if (!answer || answer.waiting) this.#clear(words.say("odds.asking"));
    else if (answer.error) this.#clear(answer.error);
    else this.#told(answer);
  }

  #clear(text) {
    this.answer = null;
    setText(this.said, text);
    setText(this.source, "");
    this.rows.replaceChildren();
  }

  #told(answer) {
    if (this.answer === answer) return;
    this.answer = answer;
    const { words } = this.scene;
    const { figures } = this.run;
    const { tokens } = answer;
    setText(this.said, words.say(tokens.length === 1 ? "odds.said_one" : "odds.said", {
      text: outer(this.asked), n: count(tokens.length), step: count(this.cursor + 1), rank: count(tokens[0].rank),
      vocabulary: this.run.model.vocabulary ? count(this.run.model.vocabulary) : "?",
      model: small(Math.exp(answer.logprob), answer.logprob, figures), settings: percent(answer.processed_probability, figures),
    }));
    let [model, after] = [0, 1];
    this.rows.replaceChildren(this.#head(), ...tokens.map((one) => {
      model += one.logprob;
      after *= one.processed_probability;
      return this.#row(one, model, after);
    }));
    const notes = (answer.notes ?? []).filter((key) => words.has(`notes.${key}`)).map((key) => words.say(`notes.${key}`));
    setText(this.source, [sourceText(words, answer.source, this.run, "what_if.read"), ...notes].join(" "));
  }

  #head() {
    const { words } = this.scene;
    const cells = ["odds.token", "odds.rank", "candidates.raw", "candidates.processed", "odds.path"];
    return box("ft-text-row ft-head", ...cells.map((key, i) => make("span", i ? "ft-number" : "", words.say(key))));
  }

  #row({ token, rank, logprob, processed_probability: after }, path, pathAfter) {
    const { words } = this.scene;
    const { figures } = this.run;
    const name = visible(readToken(token));
    const model = small(Math.exp(logprob), logprob, figures);
    const product = small(Math.exp(path), path, figures);
    const row = setAttributes(box("ft-text-row", make("span", "ft-name", name), make("span", "ft-number", count(rank)),
      make("span", "ft-number", model), make("b", "ft-number", percent(after, figures)), make("span", "ft-number", product)), {
      role: "listitem", "data-id": token[0], "data-rank": rank, "data-logprob": logprob, "data-after": after,
      "aria-label": words.say("odds.row", { token: name, rank: count(rank), model, settings: percent(after, figures), path: product, after: percent(pathAfter, figures) }),
    });
    return row;
  }
}

/** A text with its outer spaces to be seen. */
const outer = (text) => text.replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length)).replace(/[\u0000-\u001f\u007f]/g, (c) => visible({ text: c, bytes: "", special: false }));

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A probability that may be tiny: below a hundredth of a per cent as 3.2 × 10⁻⁷. */
function small(p, logprob, figures) {
  if (p >= 1e-4) return percent(p, figures);
  const power = Math.floor(logprob / Math.LN10);
  const times = (10 ** (logprob / Math.LN10 - power)).toFixed(1);
  return `${times}\u2009×\u200910⁻${[...String(-power)].map((digit) => RAISED[digit]).join("")}`;
}
