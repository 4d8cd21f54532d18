// Chapter 9: a task, the preset that fits it, and the way to try it.

import { box, make, setText } from "../stage/dom.js";
import { segmented, way } from "./choose.js";

const KNOBS = [["temperature", 2], ["top_k", 100], ["top_p", 1], ["min_p", 1]];
const TASKS = [["facts", "greedy"], ["extract", "greedy"], ["chat", "balanced"], ["story", "creative"]];

export class AdvicePanel {
  source = null;

  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.task = TASKS[0];
    this.why = make("p", "ln-finding");
    this.settings = make("b", "ln-settings");
    this.prompt = make("p", "ln-quote");
    this.knobs = KNOBS.map(([name]) => this.#knob(name));
    this.node = box("",
      segmented(words.say("c9.tasks"), TASKS.map((task) => [task, words.say(`c9.${task[0]}`)]), this.task, (task) => { this.task = task; this.#show(); }),
      this.why,
      box("ln-advice", make("span", "ft-quiet", words.say("c9.settings")), this.settings),
      box("ln-knobs", ...this.knobs.map((knob) => knob.node)),
      make("h4", "ln-sub", words.say("c9.prompt")), this.prompt,
      way(words.say("open.settings"), () => scene.go.settings({ preset: this.task[1], prompt: this.prompt.textContent })));
  }

  update(material) {
    this.presets = material.lesson.settings;
    this.#show();
  }

  destroy() {}

  /** Where a control of the Playground stands; what is off, or has nothing to do, says so. */
  #knob(name) {
    const knob = { name, fill: make("i", "ln-fill-weights"), value: make("b", "ft-number") };
    knob.node = box("ln-knob", make("span", "", this.scene.stage.words.say(`stages.${name}`)), box("ln-track", knob.fill), knob.value);
    return knob;
  }

  #show() {
    const { words } = this.scene;
    const [name, preset] = this.task;
    setText(this.why, words.say(`c9.${name}_why`));
    const chosen = this.presets[preset];
    setText(this.settings, preset === "greedy" ? words.say("lane.greedy") : chosen.text);
    this.knobs.forEach(({ name: stage, node, fill, value }, i) => {
      const acts = preset === "greedy" ? stage === "temperature" : chosen.active.includes(stage);
      setText(value, acts ? String(chosen[stage]) : words.say("c9.off"));
      fill.style.transform = `scaleX(${acts ? chosen[stage] / KNOBS[i][1] : 0})`;
      node.classList.toggle("ln-off", !acts);
    });
    setText(this.prompt, words.say(`c9.${name}_prompt`));
    this.node.dataset.preset = preset;
  }
}
