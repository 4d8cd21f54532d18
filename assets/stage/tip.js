// The number beside a token under the pointer or in focus.

import { make, setText } from "./dom.js";
import { visible } from "./marks.js";
import { percent } from "./numbers.js";

const LONGEST = 40;

const shortened = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

export class Tip {
  constructor(words, layer) {
    this.words = words;
    this.node = make("div", "ft-tip");
    this.node.hidden = true;
    this.node.setAttribute("aria-hidden", "true");
    layer.append(this.node);
  }

  /** Watch the tokens in `node`; `stepOf(chip)` gives {step, figures} or null. */
  watch(node, stepOf) {
    const show = (event) => {
      const chip = event.target.closest?.(".ft-token");
      const found = chip && stepOf(chip);
      if (found) this.#show(chip, found);
      else this.hide();
    };
    node.addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") show(event); });
    node.addEventListener("focusin", show);
    node.addEventListener("pointerleave", () => this.hide());
    node.addEventListener("focusout", () => this.hide());
  }

  #show(chip, { step, figures }) {
    const shown = this.words.say("tip.token", {
      text: shortened(visible(step.token)), processed: percent(step.processed_probability, figures),
      raw: percent(Math.exp(step.raw_logprob), figures), id: step.token.id,
    });
    setText(this.node, shown);
    this.node.hidden = false;
    const at = chip.getClientRects()[0] ?? chip.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const frame = this.node.offsetParent?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const left = Math.min(Math.max(8, at.left + at.width / 2 - width / 2), window.innerWidth - width - 8);
    this.node.style.left = `${left - frame.left}px`;
    this.node.style.top = `${at.top - height - 6 - frame.top}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}
