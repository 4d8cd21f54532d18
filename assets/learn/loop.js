// Chapter 3: one token drawn, appended, and again; or, as in training, every place of the prompt at once.

import { box, make, setText } from "../stage/dom.js";
import { Chips } from "../stage/chips.js";
import { choices } from "../stage/choices.js";
import { DrawStrip } from "../stage/draw_strip.js";
import { spoken, visible } from "../stage/marks.js";
import { count, draw, percent, rate } from "../stage/numbers.js";
import { Rows } from "../stage/rows.js";
import { readToken, shade, surprisal } from "../stage/run.js";
import { Ticker, actions, push, segmented } from "./choose.js";
import { Prose } from "./prose.js";
import { quiet } from "./tokens.js";

const ROWS = 6;
const PLAY_MS = 900;
const STRIP_LIMIT = 60;

export class LoopPanel {
  source = "main";

  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.at = 3;
    this.mode = "generation";
    this.ticker = new Ticker();
    this.node = box("", segmented(words.say("c3.mode"),
      [["generation", words.say("c3.generation")], ["training", words.say("c3.training")]], this.mode,
      (mode) => this.#switch(mode)), this.#generation(), this.#training());
    this.#switch(this.mode);
  }

  update(material) {
    const { run } = material.main;
    if (this.run !== run) {
      this.run = run;
      this.at = Math.min(3, run.steps);
      this.#write();
      this.#show();
    }
    if (this.score !== material.score.tokens) this.#score(material);
  }

  destroy() {
    this.ticker.stop();
  }

  #generation() {
    const { words } = this.scene;
    this.chips = new Chips(make("div", "ln-running ft-prompt"));
    this.chips.node.setAttribute("role", "group");
    this.chips.node.setAttribute("aria-label", words.say("c3.text"));
    this.finding = new Prose(this.scene, make("p", "ln-finding ln-two-lines"));
    this.finding.node.setAttribute("aria-live", "polite");
    this.strip = new DrawStrip(this.scene.stage);
    this.rows = new Rows(this.scene.stage);
    this.undo = push(words.say("c3.undo"), () => this.#move(-1));
    this.next = push(words.say("c3.draw"), () => this.#move(1), "ln-main");
    this.play = push(words.say("c3.play"), () => this.#play());
    this.end = make("p", "ft-quiet");
    this.evidence = box("ln-evidence", this.strip.node, this.rows.node);
    this.one = box("", this.chips.node, actions(this.next, this.undo, this.play), this.finding.node, this.end, this.evidence);
    return this.one;
  }

  #training() {
    this.places = make("ol", "ln-places");
    this.sum = make("p", "ln-finding");
    this.scoreNote = make("p", "ft-quiet");
    this.all = box("", new Prose(this.scene, make("p", "ft-quiet")).say("c3.strip", {}), this.places, this.sum, this.scoreNote);
    return this.all;
  }

  #switch(mode) {
    this.mode = mode;
    this.ticker.stop();
    this.one.hidden = mode !== "generation";
    this.all.hidden = mode === "generation";
  }

  /** The whole text once; what is still to come is hidden. */
  #write() {
    this.chips.clear();
    const { prompt } = this.run.started;
    prompt.forEach((wire) => quiet(this.chips.push({ token: readToken(wire) }).chip).classList.add("ln-read"));
    this.run.lanes[0].steps.forEach((step) => {
      quiet(this.chips.push({ token: step.token, text: step.text, level: shade(surprisal(step)) }).chip);
    });
    this.prompt = prompt.length;
  }

  #move(by) {
    this.at = Math.min(this.run.steps, Math.max(0, this.at + by));
    if (this.at === this.run.steps) this.ticker.stop();
    this.#show();
  }

  #play() {
    if (this.ticker.on) this.ticker.stop();
    else {
      if (this.at === this.run.steps) this.at = 0;
      this.ticker.start(PLAY_MS, () => this.#move(1));
    }
    this.#show();
  }

  #show() {
    const { words } = this.scene;
    const lane = this.run.lanes[0];
    const step = lane.steps[this.at - 1];
    this.chips.items.forEach(({ chip }, i) => {
      chip.classList.toggle("ln-later", i >= this.prompt + this.at);
      if (i === this.prompt + this.at - 1 && step) chip.setAttribute("aria-current", "true");
      else chip.removeAttribute("aria-current");
    });
    this.undo.disabled = this.at === 0;
    this.next.disabled = this.at === this.run.steps;
    setText(this.play, words.say(this.ticker.on ? "c3.pause" : "c3.play"));
    this.evidence.style.visibility = step ? "" : "hidden";
    this.node.dataset.step = String(this.at);
    setText(this.end, this.at === this.run.steps && lane.done ? words.say("c3.end", { reason: this.#reason(lane) }) : "");
    if (!step) return void this.finding.say("c3.before", { n: count(this.prompt) });
    this.finding.say(step.draw === null ? "c3.step_argmax" : "c3.step", {
      n: count(this.at), read: count(step.position), token: visible(step.token),
      raw: percent(Math.exp(step.raw_logprob), this.run.figures), draw: draw(step.draw),
    });
    this.strip.show(step);
    this.rows.show(choices(step, this.run.model.vocabulary, ROWS), step, lane, this.run.figures, ROWS);
  }

  #reason(lane) {
    const values = { stop: lane.finished?.stop_string ?? "", n: count(lane.steps.length) };
    return this.scene.stage.words.say(`finish.${lane.reason}`, values);
  }

  #score(material) {
    const { words } = this.scene;
    this.score = material.score.tokens;
    const shown = this.score.slice(0, STRIP_LIMIT);
    this.places.replaceChildren(...shown.map((place) => this.#place(place)));
    setText(this.sum, words.say("c3.all_at_once", { n: count(this.score.length), bits: rate(material.score.bits) }));
    this.sum.dataset.bits = String(material.score.bits);
    const recorded = material.main.own && !material.score.own;
    setText(this.scoreNote, recorded ? words.say("run.part_recorded", { prompt: material.recorded.main.run.started.request.prompt }) : "");
  }

  #place({ id, text, bytes, special, probability, surprisal_bits: b, expected }) {
    const { words } = this.scene;
    const token = { id, text, bytes, special };
    const item = make("li", "ln-place");
    Object.assign(item.dataset, { id, bits: b, probability });
    const ink = make("b", `ln-place-token ln-shade-${b === null ? 0 : shade(b)}`, visible(token));
    const favourite = expected[0] && { ...expected[0], bytes: "" };
    const rather = !favourite ? words.say("c3.first_place")
      : favourite.id === id ? words.say("c3.as_expected", { p: unbroken(probability) })
      : words.say("c3.expected", { token: visible(favourite), p: unbroken(favourite.probability) });
    item.append(ink, make("span", "ln-place-bits", b === null ? "–" : words.say("c3.bits", { n: rate(b) })), make("span", "ft-quiet", rather));
    item.setAttribute("aria-label", [spoken(token), item.children[1].textContent, rather].join(", "));
    return item;
  }
}

const unbroken = (p) => percent(p).replaceAll(" ", "\u00a0");
