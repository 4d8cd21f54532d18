// Another way from the token under the cursor: take, ban or favour a candidate, or go on with words of one's own.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { choices } from "./choices.js";
import { visible } from "./marks.js";
import { percent } from "./numbers.js";
import { OwnWords } from "./own_words.js";

const FEW = 12;
const FAVOUR_LOGITS = 2;
const WAYS = ["branch", "ban", "boost"];

export class BranchTool {
  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.way = this.#select("steer.way", WAYS.map((way) => [way, words.say(`steer.do_${way}`, { by: FAVOUR_LOGITS })]));
    this.scope = this.#select("steer.scope", [["once", words.say("steer.once")], ["whole", words.say("steer.whole")]]);
    this.way.addEventListener("change", () => { this.scope.hidden = this.way.value === "branch"; });
    this.scope.hidden = true;
    this.list = setAttributes(make("div", "ft-branch-choices"), { role: "group", "aria-label": words.say("steer.candidates") });
    this.own = new OwnWords(scene, (text) => this.#send("force", { text }));
    this.said = make("p", "ft-quiet");
    this.node = box("ft-branch-tool", box("ft-branch-line", this.way, this.scope), this.list, this.own.node, this.said);
  }

  show({ run, lane, cursor }) {
    Object.assign(this, { run, lane, cursor });
    const { words } = this.scene;
    const steering = this.scene.state().steering;
    const can = Boolean(steering?.back) && !this.scene.alone;
    for (const one of [this.way, this.scope]) one.disabled = !can;
    this.own.show({ run, lane, cursor, can });
    setText(this.said, can ? words.say("steer.how") : steering?.why || words.say("steer.no_run"));
    const step = lane.steps[cursor];
    const key = `${run.id}/${cursor}/${can}`;
    if (!step || key === this.drawn) return;
    this.drawn = key;
    this.list.replaceChildren(...this.#candidates(step).map((one) => this.#choice(one, step, can)));
  }

  #candidates(step) {
    return choices(step, this.run.model.vocabulary, FEW).rows;
  }

  #choice(candidate, step, can) {
    const own = candidate.id === step.token.id;
    const press = button("ft-branch-choice", "", () => this.#take(candidate.id));
    press.append(make("bdi", "ft-branch-token", visible(candidate)), make("span", "ft-number", percent(candidate.raw, this.run.figures)));
    press.disabled = !can;
    press.classList.toggle("ft-chosen", own);
    press.setAttribute("aria-label", this.scene.words.say("steer.choose", { token: visible(candidate), p: percent(candidate.raw, this.run.figures) }));
    return press;
  }

  #select(key, options) {
    const node = setAttributes(make("select", "ft-select"), { "aria-label": this.scene.words.say(key) });
    options.forEach(([value, text]) => node.append(setAttributes(make("option", "", text), { value })));
    return node;
  }

  #take(id) {
    const action = this.way.value;
    const more = action === "boost" ? { by: FAVOUR_LOGITS } : {};
    this.#send(action, { id, whole: this.scope.value === "whole", ...more });
  }

  #send(action, more) {
    this.scene.send("steer", { run: this.run.id, action, step: this.cursor, ...more });
  }
}
