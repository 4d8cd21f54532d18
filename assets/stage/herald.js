// What a screen reader is told while an answer grows: a sentence at a time, never each token, and how it ended.

import { make } from "./dom.js";

const PAUSE_MS = 2500;
const SENTENCE = /[.!?。！？;；:：\n]\s*$/;

export class Herald {
  constructor() {
    this.node = make("div", "ft-unseen");
    this.node.setAttribute("role", "log");
    this.node.setAttribute("aria-live", "polite");
    this.reset();
  }

  reset() {
    Object.assign(this, { said: 0, at: 0, ended: false });
    this.node.replaceChildren();
  }

  /** `read()` is the text so far, `end` the sentence of the end once there is one. */
  tell(read, end = "") {
    const now = performance.now();
    if (this.ended || (!end && now - this.at < PAUSE_MS)) return;
    const text = read();
    const fresh = text.slice(this.said);
    if (!end && !SENTENCE.test(fresh)) return;
    this.said = text.length;
    this.at = now;
    this.ended = Boolean(end);
    this.node.replaceChildren(make("p", "", [fresh.trim(), end].filter(Boolean).join(" ")));
  }
}
