// Many draws drawn: a tree of continuations, as wide at each branch as its share of the draws.

import { box, make, region, setAttributes, setText } from "./dom.js";
import { appendMarked } from "./marks.js";
import { count, percent } from "./numbers.js";
import { PrefixTree, sameSettings } from "./prefix_tree.js";
import { describe } from "./settings.js";
import { Choice } from "./tree_rows.js";
import { Sentence } from "./words.js";

const LIVE_MS = 250;
const THICKEST_PX = 14;
const TEXT_CHARACTERS = 280;

export class TreeCard {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.title = make("h2", "ft-title", words.say("draws.title"));
    this.why = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.list = make("div", "ft-tree");
    setAttributes(this.list, { role: "tree", "aria-label": words.say("draws.tree") });
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => this.#click(event));
    this.path = make("p", "ft-tree-path");
    this.path.dir = "auto";
    this.finding = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.legend = make("p", "ft-quiet", words.say("draws.legend"));
    this.node = region(words.say("draws.title"), "ft-card-tree");
    this.node.append(this.title, this.why.node, this.list, box("ft-tree-chosen", this.path, this.finding.node), this.legend);
    this.reset();
  }

  reset() {
    clearTimeout(this.timer);
    Object.assign(this, { tree: new PrefixTree(), choice: new Choice(), rows: new Map(), order: "", picked: null, at: 0, shown: "", known: null, fits: false });
    this.list.replaceChildren();
    this.path.replaceChildren();
    this.finding.clear();
    this.why.clear();
    this.node.hidden = true;
  }

  /** Draw what is new, four times a second while the run grows; how many steps the tree holds. */
  paint(run) {
    if (run.lanes !== this.known) Object.assign(this, { known: run.lanes, fits: sameSettings(run.lanes) });
    this.node.hidden = !this.fits;
    if (!this.fits) return 0;
    this.run = run;
    const held = this.tree.grow(run.lanes);
    const key = `${held},${run.done}`;
    const wait = LIVE_MS - (performance.now() - this.at);
    if (key === this.shown) return held;
    clearTimeout(this.timer);
    if (run.done || wait <= 0 || !this.shown) {
      this.shown = key;
      this.#draw();
    } else {
      this.timer = setTimeout(() => this.paint(this.run), wait);
    }
    return held;
  }

  #draw() {
    this.at = performance.now();
    const { words } = this.scene;
    const root = this.tree.branch();
    const total = this.run.lanes.length;
    this.why.show(root.ids.length ? "draws.finding" : "draws.finding_start", {
      n: count(total), settings: describe(words, { ...this.run.lanes[0], greedy: false, decoding: { ...this.run.lanes[0].decoding, seed: null } }),
      ways: words.many("continuations", this.tree.endings(), count(this.tree.endings())),
      shared: words.many("tokens", root.ids.length, count(root.ids.length)),
    });
    this.#fill(this.choice.rows(this.tree), total);
    this.#tell();
  }

  /** Rows that stand where they stood are written in place, so that nothing loses the focus. */
  #fill(rows, total) {
    const nodes = rows.map((row) => {
      const key = row.branch ? String(row.branch.key) : `rest-${row.of.key}`;
      if (!this.rows.has(key)) this.rows.set(key, this.#row(key));
      const node = this.rows.get(key);
      if (row.branch) this.#write(node, row, total);
      else this.#rest(node, row, total);
      return node;
    });
    const order = nodes.map((node) => node.dataset.key).join();
    if (order === this.order) return;
    const focused = nodes.find((node) => node.contains(document.activeElement));
    this.order = order;
    this.list.replaceChildren(...nodes);
    const kept = new Set(nodes.map((node) => node.dataset.key));
    for (const key of this.rows.keys()) if (!kept.has(key)) this.rows.delete(key);
    focused?.focus();
    if (!nodes.some((node) => node.tabIndex === 0) && nodes[0]) nodes[0].tabIndex = 0;
  }

  #row(key) {
    const node = make("div", "ft-tree-row");
    setAttributes(node, { role: "treeitem", tabindex: "-1", "data-key": key });
    const parts = { gutter: make("span", "ft-tree-gutter"), text: make("span", "ft-tree-text"), numbers: make("span", "ft-tree-numbers") };
    parts.gutter.setAttribute("aria-hidden", "true");
    parts.text.dir = "auto";
    node.append(parts.gutter, parts.text, parts.numbers);
    return Object.assign(node, { parts });
  }

  #write(node, { branch, level, open, after, lines }, total) {
    const { words } = this.scene;
    const share = branch.count / total;
    this.#gutter(node, { level, open, share, after: after / total, lines: lines.map((one) => one / total), more: branch.children.length > 0 });
    const text = branch.text.length > TEXT_CHARACTERS ? `${branch.text.slice(0, TEXT_CHARACTERS)}…` : branch.text;
    const ends = branch.tips && branch.children.length ? words.say("draws.end_here", { n: count(branch.tips) }) : "";
    const written = [text, ends, level].join("\n");
    if (node.written !== written) {
      node.written = written;
      node.parts.text.replaceChildren();
      const first = make("b");
      if (level) appendMarked(first, branch.first);
      node.parts.text.append(first);
      appendMarked(node.parts.text, level ? text.slice(branch.first.length) : text || words.say("draws.start"));
      if (ends) node.parts.text.append(make("i", "ft-quiet", ends));
    }
    const numbers = words.say("draws.count", { n: count(branch.count), total: count(total), share: percent(share, 2), computed: percent(branch.probability, 2) });
    if (node.parts.numbers.title !== numbers) {
      node.parts.numbers.title = numbers;
      node.parts.numbers.replaceChildren(make("b", "", count(branch.count)), make("span", "", percent(share, 2)), make("span", "ft-quiet", percent(branch.probability, 2)));
    }
    setAttributes(node, {
      "aria-level": level + 1, "data-count": branch.count, "data-probability": branch.probability, "data-ids": branch.ids.join(),
      "aria-selected": String(this.picked === branch.key),
      "aria-label": words.say("draws.row", { text: text || words.say("draws.start"), numbers }),
    });
    if (branch.children.length) node.setAttribute("aria-expanded", String(open));
    else node.removeAttribute("aria-expanded");
  }

  #rest(node, { rest, count: draws, level, lines }, total) {
    const { words } = this.scene;
    this.#gutter(node, { level, open: false, share: draws / total, after: 0, lines: lines.map((one) => one / total), more: false });
    const text = words.say("draws.rest", { n: count(draws), ways: words.many("continuations", rest, count(rest)) });
    setText(node.parts.text, text);
    node.parts.text.classList.add("ft-quiet");
    setAttributes(node, { "aria-level": level + 1, "aria-label": text });
  }

  /** The lines of a row: those that pass by on their way down, the one that turns in here, and the one that begins. */
  #gutter(node, { level, open, share, after, lines, more }) {
    const drawn = [level, open, share, after, more, ...lines].join();
    if (node.drawn === drawn) return;
    node.drawn = drawn;
    const cells = lines.map((passing) => cell(line("ft-tree-past", passing)));
    if (level) cells.push(cell(line("ft-tree-up", after + share), line("ft-tree-in", share), line("ft-tree-down", after)));
    cells.push(cell(open ? line("ft-tree-begin", share) : null, more ? make("span", "ft-tree-sign", open ? "−" : "+") : null));
    node.parts.gutter.replaceChildren(...cells);
  }

  #tell() {
    const { words } = this.scene;
    const row = this.picked === null ? null : this.choice.rows(this.tree).find(({ branch }) => branch?.key === this.picked);
    this.path.parentNode.hidden = !row;
    if (!row) return;
    const { branch } = row;
    const lane = branch.lane;
    const total = this.run.lanes.length;
    const texts = lane.steps.map((step) => step.text);
    const end = this.#end(branch);
    const before = texts.slice(0, end - branch.ids.length).join("");
    this.path.replaceChildren();
    appendMarked(this.path, before);
    const own = make("mark");
    appendMarked(own, branch.text || "");
    this.path.append(own);
    this.finding.show("draws.chosen", {
      n: count(branch.count), total: count(total), share: percent(branch.count / total, 3), computed: percent(branch.probability, 3),
      whole: percent(branch.whole, 3), seed: String(lane.decoding.seed ?? "–"),
    });
    setText(this.legend, words.say("draws.legend"));
  }

  /** The step after the branch's last token, counted along the lane that was first to take it. */
  #end(branch) {
    const { ids, lane } = branch;
    if (!ids.length) return 0;
    let node = this.tree.root;
    for (let step = 0; step < lane.steps.length; step += 1) {
      node = node.children.get(lane.steps[step].token.id);
      if (node.key === branch.key || (branch.key === this.tree.root.key && step === 0)) return step + ids.length;
    }
    return ids.length;
  }

  #click(event) {
    const node = event.target.closest?.(".ft-tree-row");
    if (node) this.#act(node);
  }

  /** Pick a branch and open it, or close it where it was picked before; the rest of a list comes in full. */
  #act(node) {
    const { key } = node.dataset;
    if (key.startsWith("rest-")) this.choice.all(Number(key.slice(5)));
    else {
      const again = this.picked === Number(key) || this.picked === null;
      this.picked = Number(key);
      if (node.hasAttribute("aria-expanded") && again) this.choice.set(this.picked, node.getAttribute("aria-expanded") !== "true");
    }
    this.#focus(node);
    this.#draw();
  }

  #key(event) {
    const node = event.target.closest?.(".ft-tree-row");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...this.list.children];
    const at = rows.indexOf(node);
    const open = node.getAttribute("aria-expanded");
    const ways = {
      ArrowDown: () => this.#focus(rows[at + 1]), ArrowUp: () => this.#focus(rows[at - 1]),
      Home: () => this.#focus(rows[0]), End: () => this.#focus(rows.at(-1)),
      ArrowRight: () => (open === "false" ? this.#toggle(node, true) : this.#focus(rows[at + 1])),
      ArrowLeft: () => (open === "true" ? this.#toggle(node, false) : this.#focus(this.#parent(rows, at))),
      Enter: () => this.#act(node), " ": () => this.#act(node),
    };
    if (!ways[event.key]) return;
    event.preventDefault();
    ways[event.key]();
  }

  #parent(rows, at) {
    const level = Number(rows[at].getAttribute("aria-level"));
    return rows.slice(0, at).reverse().find((row) => Number(row.getAttribute("aria-level")) < level);
  }

  #toggle(node, open) {
    this.choice.set(Number(node.dataset.key), open);
    this.#draw();
  }

  #focus(node) {
    if (!node) return;
    for (const row of this.list.children) row.tabIndex = row === node ? 0 : -1;
    node.focus();
  }
}

function cell(...parts) {
  const node = make("span", "ft-tree-cell");
  node.append(...parts.filter(Boolean));
  return node;
}

function line(className, share) {
  if (share <= 0) return null;
  const node = make("i", className);
  node.style.setProperty("--ft-w", `${Math.max(1, share * THICKEST_PX).toFixed(2)}px`);
  return node;
}
