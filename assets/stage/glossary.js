// One-line definitions: a word of the trade is a quiet button that opens its meaning beside it.

import { button, make } from "./dom.js";
import { onEscape } from "./escape.js";

export class Glossary {
  constructor(words, layer) {
    Object.assign(this, { words, opener: null });
    this.note = make("div", "ft-definition");
    this.note.setAttribute("role", "note");
    this.note.id = `ft-definition-${Math.random().toString(36).slice(2)}`;
    this.note.hidden = true;
    layer.append(this.note);
    this.onPress = (event) => { if (!this.note.contains(event.target)) this.close(); };
    this.onScroll = () => this.close();
    this.deafen = onEscape(() => this.close(true));
    document.addEventListener("pointerdown", this.onPress);
    window.addEventListener("resize", this.onScroll);
  }

  /** A button that reads `label` and opens the definition of `term`. */
  term = (term, label) => {
    const node = button("ft-term", label);
    node.setAttribute("aria-expanded", "false");
    node.title = "";
    node.addEventListener("pointerdown", (event) => event.stopPropagation());
    node.addEventListener("click", (event) => {
      event.stopPropagation();
      if (this.opener === node) this.close();
      else this.#open(node, term);
    });
    return node;
  };

  #open(node, term) {
    this.close();
    this.opener = node;
    node.setAttribute("aria-expanded", "true");
    node.setAttribute("aria-describedby", this.note.id);
    this.note.textContent = this.words.say(`glossary.${term}`);
    this.note.hidden = false;
    const at = node.getBoundingClientRect();
    const width = Math.min(300, window.innerWidth - 24);
    this.note.style.width = `${width}px`;
    const left = Math.min(Math.max(12, at.left), window.innerWidth - width - 12);
    const below = at.bottom + 6 + this.note.offsetHeight < window.innerHeight;
    const top = below ? at.bottom + 6 : at.top - 6 - this.note.offsetHeight;
    const frame = this.note.offsetParent?.getBoundingClientRect() ?? { left: 0, top: 0 };
    this.note.style.left = `${left - frame.left}px`;
    this.note.style.top = `${top - frame.top}px`;
  }

  /** Close what is open; returns whether anything was. */
  close(refocus = false) {
    if (!this.opener) return false;
    this.opener.setAttribute("aria-expanded", "false");
    this.opener.removeAttribute("aria-describedby");
    if (refocus) this.opener.focus();
    this.opener = null;
    this.note.hidden = true;
    return true;
  }

  destroy() {
    this.deafen();
    document.removeEventListener("pointerdown", this.onPress);
    window.removeEventListener("resize", this.onScroll);
    this.note.remove();
  }
}
