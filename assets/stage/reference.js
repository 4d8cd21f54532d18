// The lane that the others are compared with: the first one, until another is picked.

import { make } from "./dom.js";
import { laneName } from "./settings.js";

export class Reference {
  /** `react` is called when another lane has been picked. */
  constructor(words, react) {
    Object.assign(this, { words });
    this.picker = make("select");
    this.picker.addEventListener("change", () => {
      this.index = Number(this.picker.value);
      react();
    });
    this.node = make("label", "ft-reference");
    this.node.append(make("span", "ft-quiet", words.say("compare.reference")), this.picker);
    this.reset();
  }

  reset() {
    this.index = 0;
    this.picker.replaceChildren();
    this.node.hidden = true;
  }

  /** The lane of `run` that is the reference now. */
  paint(run) {
    const { lanes } = run;
    if (lanes.length !== this.picker.options.length) {
      this.picker.replaceChildren(...lanes.map((lane) => new Option(laneName(this.words, lane), String(lane.index))));
      this.picker.value = String(this.index);
    }
    this.node.hidden = lanes.length < 2;
    return lanes[this.index] ?? lanes[0];
  }
}
