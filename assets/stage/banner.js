// What the run is (recorded, stopped) and what is still being fetched, in one quiet line.

import { box, make, setText } from "./dom.js";
import { plain } from "./marks.js";
import { bytes } from "./numbers.js";

const MODEL_CHARACTERS = 40;

export class Banner {
  constructor(scene) {
    this.scene = scene;
    this.label = make("span", "ft-label");
    this.label.hidden = true;
    this.sentence = make("span");
    this.amount = make("span", "ft-quiet");
    this.bar = box("ft-meter ft-on", make("i"));
    this.progress = box("ft-progress", box("ft-progress-line", this.sentence, this.amount), this.bar);
    this.progress.setAttribute("role", "status");
    this.progress.hidden = true;
    this.node = box("ft-banner", this.progress);
  }

  /** The pill that says what is shown; it lives in the corner of a card. */
  paint({ label, progress, run }) {
    const { words } = this.scene;
    this.label.hidden = !label || !words.has(`label.${label}`);
    const model = plain(String(run?.model?.name ?? "").split("/").at(-1).slice(0, MODEL_CHARACTERS));
    if (!this.label.hidden) setText(this.label, words.say(`label.${label}`, { model }));
    this.label.dataset.label = label ?? "";
    this.#progress(progress);
  }

  #progress(progress) {
    this.progress.hidden = !progress;
    if (!progress) return;
    const { done_bytes: done, total_bytes: total } = progress;
    setText(this.sentence, progress.sentence || progress.step || "");
    const amount = done === null || done === undefined ? "" : total
      ? this.scene.words.say("progress.of", { done: bytes(done), total: bytes(total) }) : bytes(done);
    setText(this.amount, amount);
    this.bar.classList.toggle("ft-unknown", !total);
    this.bar.firstChild.style.transform = total ? `scaleX(${Math.min(1, (done ?? 0) / total)})` : "";
  }
}
