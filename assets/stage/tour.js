// Five captions for a first visit, one at a time, beside what they explain and never over it.

import { box, button, make, setText } from "./dom.js";
import { onEscape } from "./escape.js";

const REMEMBERED = "first-token-tour";
const STOPS = ["token", "bars", "draw", "time", "memory"];
const GAP = 10;

export class Tour {
  /** `targets` names the element that each stop explains; `layer` is where the caption may lie. */
  constructor(words, targets, layer, frame) {
    Object.assign(this, { words, targets, frame, at: 0 });
    this.text = make("p");
    this.place = make("span", "ft-quiet");
    this.next = button("ft-button", "", () => this.#go(this.at + 1));
    this.done = button("ft-button", words.say("tour.done"), () => this.end());
    this.node = box("ft-tour", this.text, box("ft-tour-line", this.place, this.next, this.done));
    this.node.setAttribute("role", "note");
    this.node.setAttribute("aria-label", words.say("tour.name"));
    this.node.hidden = true;
    layer.append(this.node);
    this.deafen = onEscape(() => this.end());
    this.watcher = new ResizeObserver(() => this.#lay());
    this.watcher.observe(frame);
  }

  /** Begin, once, unless it was dismissed on an earlier visit. */
  offer() {
    if (this.offered || remembered()) return;
    this.offered = true;
    this.start();
  }

  start() {
    this.node.hidden = false;
    this.#go(0, false);
  }

  /** Dismiss it for good; returns whether it was shown. */
  end() {
    if (this.node.hidden) return false;
    this.node.hidden = true;
    this.#point(null);
    try { localStorage.setItem(REMEMBERED, "done"); } catch { /* private windows keep nothing */ }
    return true;
  }

  destroy() {
    this.deafen();
    this.watcher.disconnect();
  }

  #go(at, follow = true) {
    this.at = at;
    const last = at === STOPS.length - 1;
    setText(this.text, this.words.say(`tour.${STOPS[at]}`));
    setText(this.place, this.words.say("tour.place", { n: at + 1, total: STOPS.length }));
    setText(this.next, this.words.say("tour.next"));
    this.next.hidden = last;
    this.#point(this.targets[STOPS[at]]());
    this.#lay();
    if (follow) this.node.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
  }

  #point(target) {
    this.target?.classList.remove("ft-toured");
    target?.classList.add("ft-toured");
    this.target = target;
  }

  /** Below, above, left or right of the target: the first place with room. */
  #lay() {
    if (this.node.hidden || !this.target) return;
    const frame = this.frame.getBoundingClientRect();
    const at = this.target.getBoundingClientRect();
    const width = Math.min(300, frame.width - 24);
    this.node.style.width = `${width}px`;
    const height = this.node.offsetHeight;
    const besideLeft = at.left - frame.left - width - GAP;
    const besideRight = at.right - frame.left + GAP;
    const top = at.top - frame.top;
    const middle = top + Math.max(0, (at.height - height) / 2);
    const within = Math.min(Math.max(12, at.left - frame.left), frame.width - width - 12);
    const [x, y] = besideLeft >= 12 ? [besideLeft, middle]
      : besideRight + width <= frame.width - 12 ? [besideRight, middle]
      : [within, at.bottom - frame.top + GAP];
    this.node.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }
}

function remembered() {
  try { return localStorage.getItem(REMEMBERED) === "done"; } catch { return false; }
}

const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
