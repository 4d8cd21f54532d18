// The strings of one language, by key, and sentences made of them.
//
// A short value never breaks between its number and its unit, and stands apart from the direction of the words
// around it. A string may hold {name} for a value, **bold**, and [[term|words]] for a word with a definition.

const SHORT = 16;
const MARKS = /\{(\w+)\}|(\*\*)|\[\[([\w-]+)\|([^\]]+)\]\]/g;

export class Words {
  constructor(text) {
    this.strings = new Map();
    this.#flatten(text?.stage ?? text ?? {}, "");
  }

  has(key) {
    return this.strings.has(key);
  }

  /** The string of `key` as plain text, with `values` filled in. */
  say(key, values = {}) {
    const text = this.strings.get(key) ?? key;
    return text.replace(MARKS, (all, name, bold, term, label) => {
      if (name) return String(values[name] ?? "");
      return bold ? "" : label;
    });
  }

  /** `key`, or `key.one` for a single thing, with {n} filled in by `written`. */
  many(key, n, written) {
    const one = `${key}_one`;
    return this.say(n === 1 && this.has(one) ? one : key, { n: written });
  }

  /** The raw string, for `Sentence`. */
  pattern(key) {
    return this.strings.get(key) ?? key;
  }

  #flatten(value, prefix) {
    for (const [name, item] of Object.entries(value)) {
      const key = (prefix ? `${prefix}.${name}` : name).replace(/^stage\./, "");
      if (item !== null && typeof item === "object") this.#flatten(item, key);
      else this.strings.set(key, String(item));
    }
  }
}

/**
 * A sentence in the page. The nodes are made once a pattern; a change of values only rewrites text,
 * so that a word under the pointer or in focus stays where it is.
 */
export class Sentence {
  /** `press` gives values by their names something to do when they are pressed. */
  constructor(node, words, term, press = {}) {
    Object.assign(this, { node, words, term, press, key: null, slots: [] });
  }

  show(key, values = {}) {
    if (key !== this.key) this.#build(key);
    for (const [name, slot] of this.slots) {
      const text = String(values[name] ?? "");
      if (slot.data === text) continue;
      slot.data = text;
      slot.parentNode.classList.toggle("ft-value", text.length < SHORT);
    }
    return this.node;
  }

  clear() {
    this.key = null;
    this.slots = [];
    this.node.replaceChildren();
  }

  #build(key) {
    this.clear();
    this.key = key;
    const pattern = this.words.pattern(key);
    let into = this.node;
    let at = 0;
    for (const mark of pattern.matchAll(MARKS)) {
      into.append(pattern.slice(at, mark.index));
      at = mark.index + mark[0].length;
      if (mark[1]) into.append(this.#slot(mark[1]));
      else if (mark[2]) into = into === this.node ? this.#bold() : this.node;
      else into.append(this.term(mark[3], mark[4]));
    }
    into.append(pattern.slice(at));
  }

  #slot(name) {
    const slot = document.createTextNode("");
    this.slots.push([name, slot]);
    const press = this.press[name];
    const holder = document.createElement(press ? "button" : "bdi");
    if (press) Object.assign(holder, { type: "button", className: "ft-provable", title: this.words.say("prove.open") }).addEventListener("click", press);
    holder.append(slot);
    return holder;
  }

  #bold() {
    const node = document.createElement("b");
    this.node.append(node);
    return node;
  }
}
