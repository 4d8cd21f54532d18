// Small controls that every panel uses: one of a few, and buttons in a row.

import { box, button, make } from "../stage/dom.js";

let groups = 0;

/** One of `options`, [value, label]: radio buttons in one row, named `name`. */
export function segmented(name, options, chosen, react) {
  groups += 1;
  const node = make("fieldset", "ln-segments");
  node.append(make("legend", "", name));
  const row = node.appendChild(make("div", "ln-segment-row"));
  for (const [value, label] of options) {
    const item = make("label", "ln-segment");
    const input = make("input");
    Object.assign(input, { type: "radio", name: `ln-${groups}`, value: String(value), checked: value === chosen });
    input.addEventListener("change", () => react(value));
    item.append(input, make("span", "", label));
    row.append(item);
  }
  return node;
}

/** Push buttons beside each other. */
export const actions = (...buttons) => box("ln-actions", ...buttons);

export const push = (text, act, kind = "") => button(`ft-button ${kind}`.trim(), text, act);

/** A link into another tab. */
export function way(text, act) {
  const node = button("ln-way", text, act);
  node.append(make("span", "ln-arrow"));
  node.lastChild.setAttribute("aria-hidden", "true");
  return node;
}

/** Run `act` every `ms` until `stop`; one ticking at a time. */
export class Ticker {
  constructor() {
    this.timer = 0;
  }

  get on() {
    return this.timer !== 0;
  }

  start(ms, act) {
    this.stop();
    this.timer = setInterval(act, ms);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
  }
}
