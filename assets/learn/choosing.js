// Chapter 8: one prompt under two settings side by side; a word that is pressed shows what else could have stood
// there. Recorded runs, several lanes from one prefill each.

import { box, make, setText } from "../stage/dom.js";
import { Chips } from "../stage/chips.js";
import { choices } from "../stage/choices.js";
import { isPiece, spoken, visible } from "../stage/marks.js";
import { count, percent, rate } from "../stage/numbers.js";
import { Rows } from "../stage/rows.js";
import { shade, surprisal } from "../stage/run.js";
import { segmented } from "./choose.js";
import { Prose } from "./prose.js";
import { focusable } from "./tokens_in_reach.js";

const ROWS = 6;
const PROMPTS = ["factual", "creative"];
const OPEN = ["greedy", "top_p"];

export class ChoosingPanel {
  source = "fixed";

  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.prompt = PROMPTS[0];
    this.question = make("p", "ln-quote");
    this.sides = OPEN.map((name, i) => this.#side(name, i));
    this.node = box("",
      segmented(words.say("c8.prompt"), PROMPTS.map((name) => [name, words.say(`c8.${name}`)]), this.prompt, (name) => { this.prompt = name; this.#show(); }),
      this.question, box("ln-two", ...this.sides.map((side) => side.node)));
  }

  update(material) {
    if (this.material) return;
    this.material = material;
    this.#show();
  }

  destroy() {}

  #side(name, i) {
    const { words } = this.scene;
    const side = {
      lane: name, chips: new Chips(make("div", "ln-running ln-answer")), mean: make("p", "ft-quiet"),
      picker: make("div"), why: new Prose(this.scene, make("p", "ln-finding")), rows: new Rows(this.scene.stage), i,
    };
    side.evidence = box("ln-evidence", side.why.node, side.rows.node);
    side.chips.node.setAttribute("role", "group");
    side.chips.node.setAttribute("aria-label", words.say(i ? "c8.rightside" : "c8.left"));
    side.reach = focusable(side.chips.node, (at) => this.#look(side, at));
    side.node = box("ln-box", side.picker, box("ln-box-text", side.chips.node), side.mean, side.evidence);
    return side;
  }

  get #run() {
    return this.material.recorded[this.prompt].run;
  }

  #show() {
    const { words } = this.scene;
    setText(this.question, this.#run.started.request.prompt);
    const lanes = this.#run.lanes.map((lane) => [lane.decoding.name, words.say(`lane.${lane.decoding.name}`)]);
    for (const side of this.sides) {
      const name = words.say("c8.settings_of", { side: words.say(side.i ? "c8.rightside" : "c8.left") });
      side.picker.replaceChildren(segmented(name, lanes, side.lane, (lane) => { side.lane = lane; this.#fill(side); }));
      this.#fill(side);
    }
  }

  #fill(side) {
    const lane = this.#run.lanes.find(({ decoding }) => decoding.name === side.lane);
    side.shown = lane;
    side.chips.clear();
    lane.steps.forEach((step, i) => side.chips.push({
      token: step.token, text: i ? step.text : step.text.trimStart(), level: shade(surprisal(step)), name: spoken(step.token),
    }));
    if (lane.reason === "stop_token") side.chips.explainEnd(this.scene.stage.words.say("answer.end"));
    const bits = this.material.lesson.means[this.prompt][lane.index];
    setText(side.mean, this.scene.words.say("c8.mean", { bits: rate(bits) }));
    side.mean.dataset.bits = String(bits);
    side.node.dataset.lane = side.lane;
    side.reach.mark(telling(lane));
  }

  #look(side, at) {
    const step = side.shown.steps[at];
    const values = {
      token: visible(step.token), n: count(at + 1), mass: percent(step.kept_mass, 2),
      kept: this.scene.stage.words.many("candidates.kept", step.kept_count, count(step.kept_count)),
    };
    side.why.say(side.shown.greedy ? "c8.at_greedy" : "c8.at", values);
    const run = this.#run;
    side.rows.show(choices(step, run.model.vocabulary, ROWS), step, side.shown, run.figures, ROWS);
  }
}

/** The step to open on: the least expected of the early ones. */
function telling(lane) {
  const early = lane.steps.slice(0, 14).map((step) => (isPiece(step.token) || step.token.special ? 0 : surprisal(step)));
  return early.indexOf(Math.max(...early));
}
