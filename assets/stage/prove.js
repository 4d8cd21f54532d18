// A dialog that proves one number of the step under the cursor: its formula, the same with this run's values,
// and code that computes it again.

import { box, button, make, setText } from "./dom.js";
import { onEscape } from "./escape.js";
import { visible } from "./marks.js";
import { count } from "./numbers.js";
import { NUMBERS, prove } from "./proofs.js";
import { recompute } from "./recompute.js";
import { stageName } from "./settings.js";

export class Prove {
  constructor(scene, layer) {
    const { words } = scene;
    Object.assign(this, { scene, key: NUMBERS[0], view: null });
    this.title = make("h2", "ft-prove-title");
    this.title.id = `ft-prove-${Math.random().toString(36).slice(2)}`;
    this.picks = NUMBERS.map((key) => button("ft-toggle", words.say(`prove.name.${key}`), () => this.#show(key)));
    this.value = make("p", "ft-prove-value");
    this.kind = make("span", "ft-quiet");
    this.meaning = make("p", "ft-why");
    this.formula = make("div", "ft-formula");
    this.formula.setAttribute("role", "group");
    this.formula.setAttribute("aria-label", words.say("prove.formula"));
    this.note = make("p", "ft-why");
    this.code = make("code");
    this.pre = make("pre", "ft-code");
    this.pre.tabIndex = 0;
    this.pre.setAttribute("role", "region");
    this.pre.setAttribute("aria-label", words.say("prove.code"));
    this.pre.append(this.code);
    this.copied = make("span", "ft-quiet");
    this.copied.setAttribute("role", "status");
    this.node = make("dialog", "ft-prove");
    this.node.setAttribute("aria-labelledby", this.title.id);
    this.node.append(...this.#parts());
    this.node.addEventListener("click", (event) => { if (event.target === this.node) this.close(); });
    this.deafen = onEscape(() => this.close());
    layer.append(this.node);
  }

  #parts() {
    const { words } = this.scene;
    const close = button("ft-button", words.say("sheet.close"), () => this.close());
    const picker = box("ft-picker", ...this.picks);
    picker.setAttribute("role", "group");
    picker.setAttribute("aria-label", words.say("prove.which"));
    const copy = button("ft-button", words.say("prove.copy"), () => this.#copy());
    return [box("ft-prove-body",
      box("ft-prove-head", this.title, close), picker, this.value, this.meaning, this.formula, this.note,
      box("ft-prove-head", make("h3", "ft-title", words.say("prove.recompute")), this.copied, copy), this.pre,
      make("p", "ft-quiet", words.say("prove.weights")))];
  }

  /** Open at number `key`. */
  open(key) {
    if (!this.view?.lane?.steps[this.view.cursor]) return;
    this.#show(key);
    if (!this.node.open) this.node.showModal();
  }

  /** Close; returns whether it was open. The browser gives the focus back to where it was. */
  close() {
    if (!this.node.open) return false;
    this.node.close();
    return true;
  }

  /** What the numbers are taken from; the dialog itself stands still while it is open. */
  paint(view) {
    if (!this.node.open) this.view = view;
  }

  destroy() {
    this.deafen();
    this.close();
  }

  #show(key) {
    const { words } = this.scene;
    const { lane, cursor } = this.view;
    this.key = key;
    const step = lane.steps[cursor];
    setText(this.title, words.say("prove.title", { n: count(cursor + 1), text: visible(step.token) }));
    this.picks.forEach((pick, i) => pick.setAttribute("aria-pressed", String(NUMBERS[i] === key)));
    setText(this.copied, "");
    const proof = prove(key, this.view, (unit, n) => words.say(`prove.unit.${unit}`, { n }));
    setText(this.code, proof ? recompute(key, this.view) : "");
    this.pre.hidden = !proof;
    setText(this.meaning, words.say(`prove.meaning.${key}`));
    this.#result(proof);
    this.#lines(proof);
    setText(this.note, proof ? this.#note(proof) : words.say("prove.unknown"));
  }

  #result(proof) {
    const { words } = this.scene;
    setText(this.kind, proof ? words.say(proof.measured ? "prove.measured" : "prove.computed") : "");
    this.value.replaceChildren(make("b", "", proof?.shown ?? "–"), this.kind);
  }

  #lines(proof) {
    const lines = proof?.formula ? [make("p", "", proof.formula), ...proof.lines.map((line) => make("p", "", `= ${line}`))] : [];
    this.formula.replaceChildren(...lines);
    this.formula.hidden = !lines.length;
  }

  #note({ note, values, stages = [] }) {
    const { words } = this.scene;
    const names = stages.map((name) => stageName(words, name)).join(" · ");
    return words.say(`prove.note.${note}`, { ...values, stages: names });
  }

  async #copy() {
    const { words } = this.scene;
    try {
      await navigator.clipboard.writeText(this.code.textContent);
      setText(this.copied, words.say("prove.copied"));
    } catch {
      window.getSelection()?.selectAllChildren(this.code);
      setText(this.copied, words.say("prove.selected"));
    }
  }
}
