// What explains a step further, opened on demand: a line of buttons, and one panel at a time below it.

import { BranchTool } from "./branch_tool.js";
import { box, button, make, setText } from "./dom.js";
import { Histogram } from "./histogram.js";
import { remote } from "./remote.js";
import { Slide } from "./slide.js";
import { TextOdds } from "./text_odds.js";
import { Waterfall } from "./waterfall.js";
import { WhatIf } from "./what_if.js";

const KINDS = { slide: Slide, histogram: Histogram, waterfall: Waterfall, what_if: WhatIf, odds: TextOdds, branch: BranchTool };

/** What asks the model again, with its logits: a server keeps none. */
const NEEDS_LOGITS = ["waterfall", "what_if", "odds"];

export class Tools {
  constructor(scene) {
    this.words = scene.words;
    this.open = null;
    this.tools = Object.entries(KINDS).map(([key, Kind]) => this.#tool(scene, key, Kind));
    this.node = box("ft-tools", box("ft-tool-line", ...this.tools.map((tool) => tool.toggle)));
    this.node.append(this.lacking = make("p", "ft-quiet ft-lacking"), ...this.tools.map((tool) => tool.panel));
    this.lacking.hidden = true;
  }

  #tool(scene, key, Kind) {
    const panel = make("div", "ft-tool-panel");
    panel.hidden = true;
    panel.setAttribute("role", "group");
    panel.setAttribute("aria-label", scene.words.say(`tools.${key}`));
    const tool = { key, panel, view: null, make: () => new Kind(scene) };
    tool.toggle = button("ft-toggle", scene.words.say(`tools.${key}`), () => this.#press(tool));
    tool.toggle.setAttribute("aria-expanded", "false");
    return tool;
  }

  #press(tool) {
    this.open = this.open === tool ? null : tool;
    if (!tool.view) tool.panel.append((tool.view = tool.make()).node);
    for (const one of this.tools) {
      one.panel.hidden = one !== this.open;
      one.toggle.setAttribute("aria-expanded", String(one === this.open));
    }
    if (this.view) this.#show();
  }

  /** What is open shows the step of `view`; what is closed costs nothing. */
  show(view) {
    this.view = view;
    this.#require(!remote(view.lane.steps[view.cursor]));
    this.#show();
  }

  /** Grey, with the reason below, where the logits are not here. */
  #require(logits) {
    if (this.lacking.hidden === logits) return;
    this.lacking.hidden = logits;
    const out = this.tools.filter((tool) => NEEDS_LOGITS.includes(tool.key));
    for (const tool of out) tool.toggle.disabled = !logits;
    const names = out.map((tool) => this.words.say(`tools.${tool.key}`)).join(this.words.say("tools.and"));
    setText(this.lacking, logits ? "" : this.words.say("tools.lacking", { names }));
    if (!logits && out.includes(this.open)) this.#press(this.open);
  }

  #show() {
    this.open?.view.show(this.view);
  }
}
