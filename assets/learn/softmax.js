// Chapter 2: the same scores at several temperatures, column by column. Every number is the server's.

import { box, make, setText } from "../stage/dom.js";
import { visible } from "../stage/marks.js";
import { count, percent, significant } from "../stage/numbers.js";
import { readToken } from "../stage/run.js";
import { segmented } from "./choose.js";
import { Prose } from "./prose.js";

const FIRST = 0.7;
const COLUMNS = ["logit", "scaled", "weight", "share"];

export class SoftmaxPanel {
  source = "softmax";

  constructor(scene) {
    this.scene = scene;
    this.t = FIRST;
    this.picker = make("div");
    this.table = make("table", "ln-softmax");
    this.finding = new Prose(scene, make("p", "ln-finding"));
    this.special = new Prose(scene, make("p", "ft-quiet"));
    this.node = box("", this.picker, box("ln-scroll", this.table), this.finding.node, this.special.node);
    this.rows = [];
  }

  update(material) {
    const { tables } = material.softmax;
    if (this.tables === tables) return;
    this.tables = tables;
    this.vocabulary = material.main.facts.vocabulary;
    const options = tables.map(({ temperature }) => [temperature, String(temperature)]);
    this.picker.replaceChildren(segmented(this.scene.words.say("c2.t"), options, this.t, (t) => { this.t = t; this.#show(); }));
    this.#head();
    this.#show();
  }

  destroy() {}

  #head() {
    const { words } = this.scene;
    const cell = (key, className) => {
      const node = make("th", className, words.say(key));
      node.scope = "col";
      return node;
    };
    const head = make("tr");
    head.append(cell("c2.col_token", ""), ...COLUMNS.map((name) => cell(`c2.col_${name}`, "ft-number")), make("td"));
    this.rows = this.tables[0].rows.map(() => this.#row());
    this.table.replaceChildren(head, ...this.rows.map((row) => row.node));
  }

  #row() {
    const row = { node: make("tr"), token: make("th", "ft-name"), bar: make("i", "ln-bar") };
    row.token.scope = "row";
    for (const name of COLUMNS) row[name] = make("td", "ft-number");
    row.share.classList.add("ln-share");
    const bars = make("td", "ln-bars");
    bars.append(row.bar);
    row.node.append(row.token, ...COLUMNS.map((name) => row[name]), bars);
    return row;
  }

  #show() {
    const table = this.tables.find(({ temperature }) => temperature === this.t) ?? this.tables[0];
    table.rows.forEach((row, i) => this.#fill(this.rows[i], row));
    const best = readToken(wired(table.rows[0].token));
    if (!table.temperature) this.finding.say("c2.greedy", { token: visible(best) });
    else {
      this.finding.say("c2.total", {
        vocabulary: count(this.vocabulary), total: significant(table.weights_total, 4), best: percent(table.rows[0].probability),
      });
    }
    if (best.special) this.special.say("c2.special", { token: best.text });
    else this.special.clear();
    this.node.dataset.temperature = String(table.temperature);
  }

  #fill(into, { token, logit, scaled, weight, probability }) {
    setText(into.token, visible(readToken(wired(token))));
    setText(into.logit, logit === null ? "–" : significant(logit, 4));
    setText(into.scaled, scaled === null ? "–" : significant(scaled, 4));
    setText(into.weight, weight === null ? "–" : weight < 5e-5 ? "< 0.0001" : significant(weight, 3));
    setText(into.share, percent(probability));
    into.bar.style.transform = `scaleX(${probability})`;
    Object.assign(into.node.dataset, { id: token.id, logit, scaled, weight, probability });
  }
}

const wired = ({ id, text, bytes, special }) => [id, text, bytes, special];
