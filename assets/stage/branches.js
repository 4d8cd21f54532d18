// The branches that part from one answer, as an indented list; pressing one brings it to the stage.

import { box, button, make, region, setAttributes, setText } from "./dom.js";
import { count } from "./numbers.js";

const DEEPEST = 8;

export class Branches {
  constructor(scene) {
    this.scene = scene;
    this.drawn = "";
    this.list = setAttributes(make("div", "ft-branch-list"), { role: "list" });
    this.node = region(scene.words.say("steer.branches"), "ft-card-branches");
    this.node.append(make("h2", "ft-title", scene.words.say("steer.branches")), this.list);
    this.node.hidden = true;
    this.list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  reset() {
    this.drawn = "";
  }

  paint({ run, steering }) {
    const found = steering?.branches ?? [];
    this.run = run;
    this.node.hidden = found.length < 2;
    const written = JSON.stringify(found);
    if (this.node.hidden || written === this.drawn) return;
    this.drawn = written;
    const depth = new Map();
    const rows = found.map((branch) => {
      depth.set(branch.run, depth.has(branch.parent) ? depth.get(branch.parent) + 1 : 0);
      return this.#row(branch, Math.min(DEEPEST, depth.get(branch.run)));
    });
    const at = [...this.list.children].indexOf(document.activeElement?.closest(".ft-branch"));
    this.list.replaceChildren(...rows);
    if (at >= 0) rows[Math.min(at, rows.length - 1)].querySelector("button").focus();
  }

  #row(branch, depth) {
    const { words } = this.scene;
    const press = button("ft-branch-go", "", () => this.scene.send("steer", { run: this.run.id, action: "show", branch: branch.run }));
    const where = branch.parent ? words.say("steer.parts", { n: count(branch.step + 1) }) : words.say("steer.root");
    const length = branch.tokens === null ? words.say("steer.growing") : words.many("steer.tokens", branch.tokens, count(branch.tokens));
    press.append(make("span", "ft-branch-where", where), setText(make("bdi", "ft-branch-text"), branch.text || "…"), make("span", "ft-branch-length", length));
    press.tabIndex = branch.current ? 0 : -1;
    if (branch.current) press.setAttribute("aria-current", "true");
    const row = setAttributes(box("ft-branch", press), { role: "listitem" });
    row.style.setProperty("--ft-depth", String(depth));
    row.classList.toggle("ft-forced", branch.forced);
    return row;
  }

  #onKey(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...this.list.querySelectorAll("button")];
    const to = all[Math.min(all.length - 1, Math.max(0, all.indexOf(document.activeElement) + by))];
    for (const one of all) one.tabIndex = one === to ? 0 : -1;
    to?.focus();
  }
}
