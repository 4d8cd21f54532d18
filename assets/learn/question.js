// One question with a checked answer: choices, or a number that is typed.

import { make, setText } from "../stage/dom.js";
import { count } from "../stage/numbers.js";
import { push } from "./choose.js";

export class Question {
  /** `n` is its number; `react(right)` is told the first answer and every better one. */
  constructor(scene, n, react) {
    Object.assign(this, { scene, n, react, asked: null, state: null });
    this.title = make("h3", "ln-question-title", scene.words.say("question", { n }));
    this.ask = make("p", "ln-ask");
    this.context = make("blockquote", "ln-context");
    this.note = make("p", "ft-quiet");
    this.answers = make("div", "ln-answers");
    this.verdict = make("p", "ln-verdict");
    this.verdict.setAttribute("role", "status");
    this.node = make("section", "ln-question");
    this.node.setAttribute("aria-label", scene.words.say("question", { n }));
    this.reveal = push(scene.words.say("reveal"), () => this.show(), "ln-reveal");
    this.node.append(this.title, this.ask, this.context, this.note, this.answers, this.verdict, this.reveal);
  }

  /** Put `asked` there, unless it is there already. */
  pose(asked) {
    const key = JSON.stringify(asked);
    if (this.key === key) return;
    Object.assign(this, { key, asked, state: null });
    setText(this.ask, bound(asked.ask));
    for (const name of ["context", "note"]) {
      setText(this[name], asked[name] ?? "");
      this[name].hidden = !asked[name];
    }
    this.node.dataset.state = "";
    this.verdict.replaceChildren();
    this.answers.replaceChildren(...(asked.options ? this.#options() : this.#field()));
  }

  /** Say the answer without having been asked: for a teacher. */
  show() {
    const { options, number, why } = this.asked;
    const right = options?.find((option) => option.right);
    this.#mark(right ? options.indexOf(right) : -1, "right");
    this.#say("revealed", `${right ? right.label : count(number)}. ${right?.why ?? why}`, "right");
  }

  #options() {
    this.buttons = this.asked.options.map((option, i) => {
      const node = push(option.label, () => this.#choose(i), "ln-option");
      return node;
    });
    return this.buttons;
  }

  #field() {
    const { words } = this.scene;
    this.buttons = [];
    const input = Object.assign(make("input", "ln-number"), { type: "text", inputMode: "numeric", autocomplete: "off", maxLength: 24 });
    input.setAttribute("aria-label", words.say("number"));
    input.placeholder = words.say("number");
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") this.#type(input.value); });
    return [input, push(words.say("check"), () => this.#type(input.value))];
  }

  #choose(i) {
    const { options, why } = this.asked;
    const option = options[i];
    this.#mark(i, option.right ? "right" : "wrong");
    this.#say(option.right ? "right" : "wrong", option.why ?? why, option.right ? "right" : "wrong");
    this.react(option.right);
  }

  #type(text) {
    const digits = text.replace(/[\s,.\u202f\u00a0']/g, "").replace(/B$/i, "");
    if (!/^\d{1,15}$/.test(digits)) return this.#say("not_number", "", "wrong");
    const typed = Number(digits);
    const { number, why, near } = this.asked;
    const right = typed === number;
    this.#say(right ? "right" : "wrong", near.find((one) => one.number === typed)?.why ?? why, right ? "right" : "wrong");
    return this.react(right);
  }

  #mark(i, state) {
    this.buttons.forEach((node, k) => {
      node.dataset.state = k === i ? state : "";
      node.setAttribute("aria-pressed", String(k === i));
    });
  }

  #say(key, why, state) {
    this.node.dataset.state = state;
    this.verdict.replaceChildren(make("b", "", this.scene.words.say(key)), why ? ` ${why}` : "");
  }
}

/** A number and what it counts stay on one line. */
function bound(text) {
  return text.replace(/(\d) (?=[%\p{L}])/gu, "$1\u00a0");
}
