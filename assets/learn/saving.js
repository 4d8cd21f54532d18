// Chapter 6: the triangles of the race for any number of tokens after a prompt of one. Counts are the server's.

import { box, make, setAttributes, setText } from "../stage/dom.js";
import { count } from "../stage/numbers.js";
import { Triangle } from "../stage/race_triangle.js";

const SIDES = ["cached", "uncached"];
const ROWS = [["kv", "kv_computed"], ["dots", "attention_dot_products_computed"]];
const FIRST = 12;

export class SavingPanel {
  source = "counts";

  constructor(scene) {
    const { words } = scene;
    this.scene = scene;
    this.triangles = SIDES.map((which) => new Triangle(scene.stage, which));
    this.slider = setAttributes(make("input", "ln-range"), { type: "range", min: 0, step: 1, "aria-label": words.say("c6.n") });
    this.slider.addEventListener("input", () => this.#show());
    this.n = make("output", "ln-clock");
    this.cells = {};
    this.own = make("p", "ft-quiet");
    this.node = box("", box("ln-controls", make("span", "ln-control-name", words.say("c6.n")), this.slider, this.n),
      box("ft-triangles ln-triangles", ...this.triangles.map((one) => one.node)), box("ln-scroll", this.#table()), this.own);
  }

  update(material) {
    const { saved } = material.lesson;
    if (!this.saved) {
      this.saved = saved;
      setAttributes(this.slider, { max: saved.length - 1 });
      this.slider.value = String(saved.findIndex(({ n }) => n === FIRST));
      this.#show();
    }
    const { facts } = material.main;
    setText(this.own, this.scene.words.say("c6.own", {
      p: count(facts.prompt_tokens), n: count(facts.new_tokens),
      with: count(facts.cached.kv_computed), without: count(facts.uncached.kv_computed),
    }));
    Object.assign(this.own.dataset, { with: facts.cached.kv_computed, without: facts.uncached.kv_computed });
  }

  destroy() {
    this.triangles.forEach((one) => one.destroy());
  }

  #table() {
    const { words } = this.scene;
    const table = make("table", "ln-table");
    const head = make("tr");
    const header = (text, scope) => Object.assign(make("th", scope === "col" ? "ft-number" : "", text), { scope });
    head.append(make("td"), header(words.say("c6.with"), "col"), header(words.say("c6.without"), "col"));
    table.append(head);
    for (const [name] of ROWS) {
      const row = make("tr");
      const first = header(words.say(`c6.${name}`), "row");
      first.append(make("small", "ft-quiet", words.say(`c6.${name}_formula`)));
      row.append(first, ...SIDES.map((which) => (this.cells[`${name}_${which}`] = make("td", "ft-number ln-count"))));
      table.append(row);
    }
    return table;
  }

  #show() {
    const row = this.saved[Number(this.slider.value)];
    setText(this.n, this.scene.words.say("c6.row", { n: count(row.n) }));
    this.slider.setAttribute("aria-valuetext", count(row.n));
    this.node.dataset.n = String(row.n);
    this.triangles.forEach((one, i) => one.show({ prompt: 1, steps: row.n, planned: row.n, computed: row[SIDES[i]].kv_computed }));
    for (const [name, field] of ROWS) {
      for (const which of SIDES) {
        setText(this.cells[`${name}_${which}`], count(row[which][field]));
        this.cells[`${name}_${which}`].dataset.value = String(row[which][field]);
      }
    }
  }
}
