// Words of one's own in the place of the token under the cursor: what tokens they are and how probable, before
// they are taken.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { count, percent } from "./numbers.js";
import { TextPath, outer, small } from "./text_path.js";

const LONGEST = 2000;
const LONGEST_ODDS = 200;
const CUT_MS = 100;
const ODDS_MS = 350;

export class OwnWords {
  /** `take(text)` puts the words there. */
  constructor(scene, take) {
    const { words } = scene;
    Object.assign(this, { scene, take, typed: 0, can: false });
    this.input = setAttributes(make("input", "ft-text-input"), {
      type: "text", maxlength: LONGEST, "aria-label": words.say("steer.own_words"), placeholder: words.say("steer.own_words"), spellcheck: "false", autocomplete: "off",
    });
    this.input.addEventListener("input", () => {
      this.typed += 1;
      this.taken = false;
      this.#paint();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.#go();
    });
    this.go = button("ft-button", words.say("steer.go"), () => this.#go());
    this.said = setAttributes(make("p", "ft-quiet ft-own-said"), { "aria-live": "polite" });
    this.path = new TextPath(scene);
    setAttributes(this.path.node, { "aria-label": words.say("own.tokens") });
    this.node = box("ft-own-words", box("ft-text-line", this.input, this.go), this.said, this.path.node);
  }

  show({ run, lane, cursor, can }) {
    Object.assign(this, { run, lane, cursor, can });
    this.input.disabled = !can;
    this.#paint();
  }

  #go() {
    if (!this.input.value || !this.can) return;
    this.taken = true;
    this.take(this.input.value);
  }

  #paint() {
    const text = this.taken ? "" : this.input.value;
    this.go.disabled = !this.can || !this.input.value;
    const cut = text && this.can ? this.#asked("pieces", String(this.typed), CUT_MS) : null;
    const odds = text && this.can && !this.#without(text) ? this.#asked("text", text, ODDS_MS) : null;
    const known = odds?.tokens ? odds : cut?.tokens ? { tokens: this.#bare(cut) } : null;
    if (known) this.path.show(known.tokens, this.run.figures);
    else if (!text || cut?.error) this.path.clear();
    setText(this.said, this.#say(text, cut, odds));
  }

  /** The tokens of `cut` as rows; the same list as long as it is the same answer. */
  #bare(cut) {
    if (this.cut !== cut) this.rows = cut.tokens.map((token) => ({ token }));
    this.cut = cut;
    return this.rows;
  }

  #asked(what, key, patience) {
    const { run, lane, cursor } = this;
    const question = { what, run: run.id, lane: lane.index, step: cursor, text: this.input.value, key };
    this.scene.questions.ask(question, patience);
    const answer = this.scene.questions.answer(question);
    return answer?.waiting ? null : answer;
  }

  /** The key of why no probability is told, empty where one is. */
  #without(text) {
    if (!this.run.done) return "own.later";
    return text.length > LONGEST_ODDS ? "own.long" : "";
  }

  #say(text, cut, odds) {
    const { words } = this.scene;
    if (!this.can || !text) return "";
    if (cut?.error) return cut.error;
    if (odds?.tokens) {
      const { logprob, processed_probability: after, tokens, notes } = odds;
      const values = { text: outer(text), tokens: words.many("tokens", tokens.length, count(tokens.length)), model: small(Math.exp(logprob), logprob, this.run.figures), settings: percent(after, this.run.figures) };
      return [words.say("own.odds", values), ...this.#notes(notes)].join(" ");
    }
    if (!cut) return words.say("own.cutting");
    const many = words.say("own.cut", { text: outer(text), tokens: words.many("tokens", cut.count, count(cut.count)) });
    const why = this.#without(text);
    return [many, odds?.error ?? (why ? words.say(why) : ""), ...this.#notes(cut.notes)].filter(Boolean).join(" ");
  }

  #notes(keys) {
    const { words } = this.scene;
    return (keys ?? []).filter((key) => words.has(`notes.${key}`)).map((key) => words.say(`notes.${key}`));
  }
}
