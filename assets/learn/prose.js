// Sentences with numbers in them. A string may hold {name}, **bold** and [[term|words]], as in the stage; a
// number keeps its exact value beside what is written, so that it can be compared with the record.

import { make, setText } from "../stage/dom.js";
import { FACTS } from "./facts.js";

const MARKS = /\{(\w+)\}|(\*\*)|\[\[([\w-]+)\|((?:[^\]]|\](?!\]))+)\]\]/g;

export class Prose {
  /** `scene` gives words and the glossary. */
  constructor(scene, node) {
    Object.assign(this, { scene, node, slots: [], key: null });
  }

  /** A paragraph of `key` whose numbers come from the material. */
  tell(key, material) {
    if (key !== this.key) this.#build(key);
    for (const [name, slot] of this.slots) {
      const [find, write] = FACTS[name];
      const value = find(material) ?? null;
      slot.dataset.value = String(value);
      setText(slot, value === null ? "–" : write(value));
    }
    return this.node;
  }

  /** A sentence of `key` with `values`, which are written already. */
  say(key, values) {
    if (key !== this.key) this.#build(key);
    for (const [name, slot] of this.slots) setText(slot, String(values[name] ?? ""));
    return this.node;
  }

  clear() {
    Object.assign(this, { slots: [], key: null });
    this.node.replaceChildren();
  }

  #build(key) {
    this.clear();
    this.key = key;
    this.#write(this.scene.words.pattern(key), this.node);
  }

  #write(pattern, into) {
    let at = 0;
    let bold = null;
    for (const mark of pattern.matchAll(MARKS)) {
      (bold ?? into).append(pattern.slice(at, mark.index));
      at = mark.index + mark[0].length;
      if (mark[1]) (bold ?? into).append(this.#slot(mark[1]));
      else if (mark[2]) bold = bold ? null : into.appendChild(make("b"));
      else at += this.#held(mark[3], mark[4], pattern.slice(at), bold ?? into);
    }
    into.append(pattern.slice(at));
  }

  /** A word with a definition, and what must not stand at the beginning of a line after it; returns its length. */
  #held(term, label, after, into) {
    const [stop] = /^[,.;:!?)，。；：！？、）]*/.exec(after);
    const holder = make("span", stop ? "ln-held" : "");
    holder.append(this.#term(term, label), stop);
    into.append(holder);
    return stop.length;
  }

  #term(term, label) {
    const node = this.scene.glossary.term(term, "");
    this.#write(label, node);
    return node;
  }

  #slot(name) {
    const slot = make("span", "ln-fact");
    slot.dataset.fact = name;
    this.slots.push([name, slot]);
    return slot;
  }
}

/** A paragraph of `key` with `values` written in, once. */
export const said = (scene, className, key, values = {}) =>
  new Prose(scene, make("p", className)).say(key, values);
