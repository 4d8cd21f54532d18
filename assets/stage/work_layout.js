// The counts of a race of any length: no run, no model, only what the server counted for two numbers.

import { box, make, setText } from "./dom.js";
import { RaceWork } from "./race_work.js";

export class WorkLayout {
  constructor(scene) {
    this.error = make("p", "ft-error");
    this.error.setAttribute("role", "alert");
    this.work = new RaceWork(scene, true);
    this.node = box("ft-work", this.error, this.work.node);
  }

  reset() {}

  steps() {
    return 0;
  }

  paint({ work, error }) {
    setText(this.error, error);
    this.error.hidden = !error;
    this.work.node.hidden = !work;
    if (!work) return 0;
    this.work.show({
      prompt: work.prompt, steps: work.new, planned: work.new, cached: work.cached, uncached: work.uncached,
      key: "race.work_any",
    });
    return 0;
  }

  destroy() {
    this.work.destroy();
  }
}
