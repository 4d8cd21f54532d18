// The reader's own words: a field, a button, and what the model is doing with them.

import { box, make, setText } from "../stage/dom.js";
import { plain } from "../stage/marks.js";
import { count } from "../stage/numbers.js";
import { push } from "./choose.js";

const LONGEST = 400;

export class Asking {
  /** `ask(prompt)` begins a run. */
  constructor(scene, ask) {
    const { words } = scene;
    Object.assign(this, { scene, ask });
    this.field = Object.assign(make("input", "ln-field"), { type: "text", maxLength: LONGEST, autocomplete: "off" });
    this.field.setAttribute("aria-label", words.say("run.field"));
    this.field.placeholder = words.say("run.placeholder");
    this.go = push(words.say("run.go"), () => this.#send());
    this.field.addEventListener("keydown", (event) => { if (event.key === "Enter") this.#send(); });
    this.line = make("p", "ft-quiet");
    this.line.setAttribute("role", "status");
    this.error = make("p", "ft-error");
    this.error.setAttribute("role", "alert");
    this.node = box("ln-asking", make("span", "ln-asking-name", words.say("run.field")), box("ln-asking-row", this.field, this.go), this.line, this.error);
    this.error.hidden = true;
  }

  update(material) {
    const { words } = this.scene;
    const { underWay } = material;
    const prompt = underWay?.started?.request.prompt;
    const line = material.progress?.sentence
      ?? (prompt ? words.say("run.running", { prompt: plain(prompt), n: count(underWay.steps) }) : material.tooShort ? words.say("run.short") : "");
    setText(this.line, line);
    const error = material.error || material.live?.failed?.message || "";
    setText(this.error, error);
    this.error.hidden = !error;
  }

  #send() {
    if (this.field.value.trim()) this.ask(this.field.value);
  }
}
