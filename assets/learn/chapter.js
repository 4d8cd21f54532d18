// One chapter on the page: title, text, panel with its source, ways out, question.

import { box, make, setText } from "../stage/dom.js";
import { plain } from "../stage/marks.js";
import { CHAPTERS } from "./chapters.js";
import { way } from "./choose.js";
import { Prose } from "./prose.js";
import { Question } from "./question.js";
import { QUESTIONS } from "./questions.js";

const PARAGRAPHS = ["a", "b", "c"];

export class Chapter {
  /** `n` from 1; `answered(right)` is told of answers, `asking` is the form for the reader's own words. */
  constructor(scene, n, answered, asking) {
    const { words } = scene;
    const { Panel, own, ways } = CHAPTERS[n - 1];
    Object.assign(this, { scene, n });
    this.title = make("h2", "ln-title");
    this.title.tabIndex = -1;
    this.title.append(make("span", "ln-number-big", String(n)), make("span", "", words.say(`c${n}.title`)));
    this.text = PARAGRAPHS.map(() => new Prose(scene, make("p", "ln-p")));
    this.panel = new Panel(scene);
    this.from = make("p", "ln-source");
    this.question = new Question(scene, n, answered);
    const out = ways.map(([name, act]) => way(words.say(`open.${name}`), () => act(scene.go, this.material)));
    const panel = make("section", "ln-panel ft-card");
    panel.setAttribute("aria-label", words.say(`c${n}.panel`));
    panel.append(make("h3", "ln-panel-title", words.say(`c${n}.panel`)), this.from, this.panel.node);
    if (own) panel.append(asking);
    if (out.length) panel.append(box("ln-ways", ...out));
    this.node = make("article", "ln-chapter");
    this.node.append(this.title, box("ln-text", ...this.text.map((one) => one.node)), panel, this.question.node);
  }

  update(material) {
    this.material = material;
    this.text.forEach((one, i) => one.tell(`c${this.n}.${PARAGRAPHS[i]}`, material));
    this.panel.update(material);
    this.question.pose(QUESTIONS[this.n - 1](this.scene.words, material));
    this.#source(material);
  }

  destroy() {
    this.panel.destroy();
  }

  #source(material) {
    const { words } = this.scene;
    const { run, own } = material.main;
    const { source } = this.panel;
    const of = ({ model, started }) => ({
      prompt: plain(started.request.prompt), model: plain(model.name), dtype: plain(model.dtype), device: plain(place(words, model)),
    });
    const recorded = material.recorded.main.run;
    const told = {
      main: () => words.say(own ? "run.own" : "run.recorded", of(run)),
      softmax: () => own && !material.softmax.own ? words.say("run.part_recorded", of(recorded)) : words.say(own ? "run.own" : "run.recorded", of(run)),
      fixed: () => words.say("run.fixed", of(recorded)),
      arithmetic: () => words.say("run.arithmetic", { model: material.lesson.cache.model }),
      counts: () => words.say("run.counts"),
    };
    setText(this.from, source ? told[source]() : "");
    this.from.dataset.own = String(own);
    this.from.hidden = !source;
  }
}

/** Where the model runs, in the words of the page. */
function place(words, { device, device_name: name }) {
  const cores = /^CPU, (\d+) cores$/.exec(name ?? "")?.[1];
  return cores ? words.say("run.cores", { n: cores }) : name || device;
}
