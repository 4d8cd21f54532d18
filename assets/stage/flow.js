// The way from the whole vocabulary to what was drawn from: one box a stage, with what it left.

import { box, make, setText } from "./dom.js";
import { count, percent } from "./numbers.js";
import { stageName, stageWithValue } from "./settings.js";

export class Flow {
  constructor(scene) {
    this.scene = scene;
    this.boxes = [];
    this.node = make("div", "ft-flow");
  }

  show(step, lane, run) {
    const { words } = this.scene;
    const parts = [["", count(run.model.vocabulary), words.say("candidates.raw")]];
    for (const stage of step.stages ?? []) parts.push(this.#stage(stage, lane));
    parts.push(["kept_mass", percent(step.kept_mass, 2), words.say("candidates.kept_mass")]);
    parts.forEach((part, i) => this.#fill(i, part));
    this.boxes.forEach(({ node }, i) => { node.hidden = i >= parts.length; });
    this.node.style.setProperty("--ft-boxes", String(Math.min(parts.length, parts.length > 5 ? 4 : 5)));
  }

  #stage({ name, kept_count: kept }, lane) {
    const { words } = this.scene;
    const value = lane.decoding[name];
    if (name === "temperature") return [name, `T ${value}`, words.say(value < 1 ? "stages.sharper" : "stages.flatter")];
    if (name === "repetition_penalty") return [name, `× ${value}`, stageName(words, name)];
    const said = name === "top_k" && kept === value;
    return [name, count(kept), said ? stageName(words, name) : stageWithValue(words, name, lane.decoding)];
  }

  #fill(i, [term, figure, label]) {
    const { glossary } = this.scene;
    const part = (this.boxes[i] ??= this.#box());
    setText(part.figure, figure);
    const key = `${term}/${label}`;
    if (part.key === key) return;
    part.key = key;
    const known = this.scene.words.has(`glossary.${term || "raw"}`);
    part.label.replaceChildren(known ? glossary.term(term || "raw", label) : label);
  }

  #box() {
    const part = { figure: make("b"), label: make("span"), key: null };
    part.node = box("ft-flow-box", part.figure, part.label);
    this.node.append(part.node);
    return part;
  }
}
