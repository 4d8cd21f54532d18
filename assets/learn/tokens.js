// Chapter 1: the prompt as tokens with their ids; a token that is pressed shows its bytes.

import { box, make, setText } from "../stage/dom.js";
import { Chips } from "../stage/chips.js";
import { spacedBytes, spoken, visible } from "../stage/marks.js";
import { count } from "../stage/numbers.js";
import { readToken } from "../stage/run.js";
import { focusable } from "./tokens_in_reach.js";

const SHOWN_LIMIT = 120;

export class TokensPanel {
  source = "main";

  constructor(scene) {
    this.scene = scene;
    this.chips = new Chips(make("div", "ln-big-tokens ft-show-ids"));
    this.detail = make("p", "ln-finding");
    this.frame = make("p", "ft-quiet");
    this.others = make("div", "ln-pieces");
    this.node = box("", this.chips.node, this.detail, this.frame,
      make("h4", "ln-sub", scene.words.say("c1.others")), this.others);
    this.reach = focusable(this.chips.node, (i) => this.#show(i));
    this.shown = null;
  }

  update(material) {
    const { run } = material.main;
    if (this.shown === run) return;
    this.shown = run;
    const { prompt, own } = run.started;
    this.tokens = prompt.slice(0, SHOWN_LIMIT).map(readToken);
    this.chips.clear();
    this.tokens.forEach((token, i) => {
      const { chip } = this.chips.push({ token, name: spoken(token) });
      if (own?.length && !own[i]) chip.classList.add("ft-added");
    });
    this.reach.reset(this.tokens.length);
    setText(this.detail, this.scene.words.say("c1.hint"));
    const added = own?.length ? own.filter((mine) => !mine).length : 0;
    setText(this.frame, added ? this.scene.words.say("c1.template", { n: count(added) }) : "");
    this.#pieces(material.lesson.pieces);
  }

  destroy() {}

  #show(i) {
    const { words } = this.scene;
    const token = this.tokens[i];
    const n = token.bytes.length / 2;
    const bytes = words.many("c1.bytes", n, count(n));
    setText(this.detail, words.say("c1.detail", {
      n: count(i + 1), all: count(this.shown.promptTokens), text: visible(token), id: count(token.id),
      bytes: bytes + spacedBytes(token.bytes),
    }));
  }

  #pieces(pieces) {
    this.others.replaceChildren(...pieces.map(({ text, tokens }) => {
      const chips = new Chips(make("span", "ln-piece-tokens ft-show-ids"));
      for (const wire of tokens) quiet(chips.push({ token: readToken(wire) }).chip);
      const n = this.scene.words.many("c1.tokens", tokens.length, count(tokens.length));
      const row = box("ln-piece", make("code", "ln-piece-text", text.replace(/^ /, "␣")), chips.node, make("span", "ft-quiet", n));
      row.dataset.tokens = tokens.map(([id]) => id).join(" ");
      return row;
    }));
  }
}

/** A token that is only looked at. */
export function quiet(chip) {
  chip.removeAttribute("role");
  chip.removeAttribute("tabindex");
  return chip;
}
