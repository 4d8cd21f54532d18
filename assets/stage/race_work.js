// The work of both sides: the sentence, the two triangles, the table of counts and the formulas.
// Every count comes from the server's one function; nothing is counted here but differences of them.

import { box, make, setText } from "./dom.js";
import { count, percent } from "./numbers.js";
import { Triangle } from "./race_triangle.js";
import { Sentence } from "./words.js";

const ROWS = [
  ["kv", "kv_computed"], ["needed", "attention_dot_products_needed"], ["computed", "attention_dot_products_computed"],
];
const SIDES = ["cached", "uncached"];
const KEYS = ["prompt", "new", "again"];

export class RaceWork {
  /** `compact` puts small triangles beside the table, where there is room. */
  constructor(scene, compact = false) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.finding = new Sentence(make("p", "ft-lead"), words, glossary.term);
    this.triangles = SIDES.map((which) => new Triangle(scene, which));
    this.cells = {};
    this.formula = make("p", "ft-quiet");
    const unit = new Sentence(make("p", "ft-quiet"), words, glossary.term).show("race.unit");
    const picture = box("ft-race-picture", box("ft-triangles", ...this.triangles.map((one) => one.node)), this.#legend());
    const formula = box("ft-race-formula", this.formula, unit);
    const counts = compact ? box("ft-race-beside", picture, box("", this.#table(), formula))
      : box("", picture, box("ft-race-beside", this.#table(), formula));
    this.node = box("ft-race-work", this.finding.node, counts);
  }

  /** `steps` of `planned` new tokens after `prompt` positions; the work of each side. */
  show({ prompt, steps, planned, cached, uncached, key = "race.work" }) {
    const sides = { cached, uncached };
    const again = uncached.kv_computed - cached.kv_computed;
    const dots = uncached.attention_dot_products_computed - cached.attention_dot_products_computed;
    const values = {
      with: count(cached.kv_computed), without: count(uncached.kv_computed), again: count(again),
      n: count(steps), p: count(prompt), last: count(prompt + steps - 1),
      share: percent(again / Math.max(1, uncached.kv_computed)),
      dots: count(dots), dot_share: percent(dots / Math.max(1, uncached.attention_dot_products_computed)),
    };
    this.finding.show(key, values);
    this.triangles.forEach((one, i) => one.show({
      prompt, steps, planned, computed: sides[SIDES[i]].kv_computed,
    }));
    for (const [name, field] of ROWS) {
      for (const which of SIDES) setText(this.cells[`${name}_${which}`], count(sides[which][field]));
    }
    setText(this.cells.saved_kv, this.scene.words.say("race.saved_kv", values));
    setText(this.cells.saved_dots, this.scene.words.say("race.saved_dots", values));
    setText(this.formula, this.scene.words.say(prompt === 1 ? "race.formula_one" : "race.formula", values));
  }

  destroy() {
    this.triangles.forEach((one) => one.destroy());
  }

  #table() {
    const { words } = this.scene;
    const table = make("table", "ft-race-table");
    table.append(make("caption", "ft-unseen", words.say("race.table")));
    const head = make("tr");
    head.append(make("td"), ...SIDES.map((which) => this.#header("col", `race.${which}`)));
    table.append(head);
    for (const [name] of ROWS) {
      const row = make("tr");
      row.append(this.#header("row", `race.count.${name}`));
      for (const which of SIDES) row.append((this.cells[`${name}_${which}`] = make("td", "ft-number")));
      table.append(row);
    }
    for (const name of ["saved_kv", "saved_dots"]) table.append(this.#saved(name));
    return table;
  }

  #saved(name) {
    const row = make("tr", "ft-race-saved");
    row.append(this.#header("row", `race.count.${name}`));
    this.cells[name] = make("td", "ft-number");
    this.cells[name].colSpan = 2;
    row.append(this.cells[name]);
    return row;
  }

  #header(scope, key) {
    const node = make("th", scope === "col" ? "ft-number" : "", this.scene.words.say(key));
    node.scope = scope;
    return node;
  }

  #legend() {
    const { words } = this.scene;
    const keys = KEYS.map((name) => {
      const key = make("span", "ft-key");
      key.append(make("i", `ft-swatch ft-swatch-${name}`), words.say(`race.key.${name}`));
      return key;
    });
    return box("ft-keys ft-race-keys", ...keys);
  }
}
