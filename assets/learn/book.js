// The tour as a book: chapters at the left, one of them open, what has been answered, a mode for teachers.

import { box, make, setText } from "../stage/dom.js";
import { Glossary } from "../stage/glossary.js";
import { Words } from "../stage/words.js";
import { Asking } from "./asking.js";
import { Chapter } from "./chapter.js";
import { CHAPTERS } from "./chapters.js";
import { push } from "./choose.js";
import { Material } from "./material.js";

const COUNT = CHAPTERS.length;
const TURNS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
const TYPING = "input, textarea, select, [contenteditable], [role='slider'], .ft-token";

export class Book {
  /** `store` reads and writes what is remembered, `go` leads to the other tabs, `ask(prompt)` begins a run. */
  constructor(root, { store, go, ask, words }) {
    Object.assign(this, { root, store, go, ask, material: new Material(), raf: 0 });
    const kept = store.read();
    const at = Number(kept.at);
    this.state = {
      at: Number.isInteger(at) && at >= 1 && at <= COUNT ? at : 1,
      answered: (Array.isArray(kept.answered) ? kept.answered : []).filter((n) => Number.isInteger(n) && n >= 1 && n <= COUNT),
      teacher: kept.teacher === true,
    };
    root.classList.add("ft-stage", "ln-book");
    this.onKey = (event) => this.#key(event);
    document.addEventListener("keydown", this.onKey);
    this.speak(words);
  }

  /** Say everything in another language; the open chapter stays. */
  speak(words) {
    this.glossary?.destroy();
    this.chapter?.destroy();
    this.chapter = null;
    this.layer = make("div", "ft-layer");
    const stage = { words: new Words(words.stage) };
    stage.glossary = this.glossary = new Glossary(stage.words, this.layer);
    stage.state = () => ({});
    this.scene = { words: new Words(words.learn), glossary: this.glossary, stage, go: this.go };
    this.asking = new Asking(this.scene, this.ask);
    this.#build();
    this.#open(this.state.at, false);
  }

  packet(packet) {
    if (this.material.accept(packet)) this.#schedule();
  }

  /** Open chapter `n`. */
  turn(n) {
    if (n < 1 || n > COUNT) return;
    this.#open(n, true);
  }

  #build() {
    const { words } = this.scene;
    this.links = CHAPTERS.map((_, i) => this.#link(i + 1));
    const list = make("ol", "ln-list");
    list.append(...this.links.map((link) => link.item));
    this.nav = make("nav", "ln-nav");
    this.nav.setAttribute("aria-label", words.say("chapters"));
    this.count = make("p", "ft-quiet");
    this.teacher = push(words.say("teacher"), () => this.#teach(!this.state.teacher), "ln-teacher");
    this.hint = make("p", "ft-quiet", words.say("teacher_hint"));
    this.nav.append(make("p", "ln-name", words.say("name")), list, box("ln-nav-foot", this.count, this.teacher, this.hint));
    this.place = make("div", "ln-place-of-chapter");
    this.loading = make("p", "ft-quiet", words.say("loading"));
    this.back = push(words.say("back"), () => this.turn(this.state.at - 1));
    this.next = push(words.say("next"), () => this.turn(this.state.at + 1), "ln-main");
    this.at = make("span", "ft-quiet");
    const main = box("ln-main-column ft-frame", this.loading, this.place, box("ln-turn", this.back, this.at, this.next));
    this.root.replaceChildren(box("ln-columns", this.nav, main), this.layer);
    this.#teach(this.state.teacher);
  }

  #link(n) {
    const { words } = this.scene;
    const item = make("li");
    const node = push("", () => this.turn(n), "ln-link");
    const tick = make("span", "ln-tick");
    node.append(make("span", "ln-link-number", String(n)), make("span", "ln-link-title", words.say(`c${n}.title`)), tick);
    item.append(node);
    return { item, node, tick };
  }

  #open(n, moved) {
    this.state.at = n;
    this.#keep();
    this.chapter?.destroy();
    this.glossary.close();
    this.chapter = new Chapter(this.scene, n, (right) => this.#answered(n, right), this.asking.node);
    this.place.replaceChildren(this.chapter.node);
    this.#marks();
    this.#paint();
    if (!moved) return;
    const top = this.root.getBoundingClientRect().top + window.scrollY - 12;
    if (window.scrollY > top) window.scrollTo({ top });
    this.chapter.title.focus({ preventScroll: true });
  }

  #answered(n, right) {
    if (!right || this.state.answered.includes(n)) return;
    this.state.answered.push(n);
    this.#keep();
    this.#marks();
  }

  #marks() {
    const { words } = this.scene;
    const { at, answered } = this.state;
    this.links.forEach(({ node, tick }, i) => {
      if (i + 1 === at) node.setAttribute("aria-current", "step");
      else node.removeAttribute("aria-current");
      const done = answered.includes(i + 1);
      setText(tick, done ? "✓" : "");
      if (done) tick.setAttribute("aria-label", words.say("answered"));
      tick.setAttribute("role", done ? "img" : "presentation");
    });
    setText(this.count, words.say("done", { n: answered.length, all: COUNT }));
    setText(this.at, words.say("of", { n: at, all: COUNT }));
    this.back.disabled = at === 1;
    this.next.disabled = at === COUNT;
    const { item } = this.links[at - 1];
    const row = item.parentNode;
    if (row.scrollWidth > row.clientWidth) row.scrollLeft = item.offsetLeft + (item.offsetWidth - row.clientWidth) / 2;
  }

  #teach(on) {
    this.state.teacher = on;
    this.#keep();
    this.root.classList.toggle("ln-teaching", on);
    this.teacher.setAttribute("aria-pressed", String(on));
    this.hint.hidden = !on;
  }

  #keep() {
    this.store.write(this.state);
  }

  #key(event) {
    if (!this.root.isConnected) return document.removeEventListener("keydown", this.onKey);
    const { target, key } = event;
    if (!this.state.teacher || this.root.offsetParent === null || event.defaultPrevented) return undefined;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.(TYPING)) return undefined;
    if (key in TURNS) this.turn(this.state.at + TURNS[key]);
    else if (key === "r" || key === "R") this.chapter.question.show();
    else return undefined;
    return event.preventDefault();
  }

  #schedule() {
    if (!this.raf) this.raf = requestAnimationFrame(() => { this.raf = 0; this.#paint(); });
  }

  #paint() {
    this.asking.update(this.material);
    this.place.hidden = !this.material.ready;
    this.loading.hidden = this.material.ready;
    this.root.dataset.ready = String(this.material.ready);
    if (this.material.ready) this.chapter.update(this.material);
  }
}
