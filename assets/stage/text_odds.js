// How probable any text would have been in the place of the token under the cursor, token by token.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { count, percent } from "./numbers.js";
import { TextPath, outer, small } from "./text_path.js";
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
    this.path = new TextPath(scene);
    this.source = make("p", "ft-quiet");
    this.node = box("ft-text-odds", box("ft-text-line", this.input, this.go), this.typed, this.said, this.path.node, this.source);
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
    this.path.clear();
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
    this.path.show(tokens, figures);
    const notes = (answer.notes ?? []).filter((key) => words.has(`notes.${key}`)).map((key) => words.say(`notes.${key}`));
    setText(this.source, [sourceText(words, answer.source, this.run, "what_if.read"), ...notes].join(" "));
  }
}
