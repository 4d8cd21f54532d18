// A token of the prompt under the cursor: what the model expected in its place. Nothing was chosen here.

import { box, make, setAttributes, setText } from "./dom.js";
import { promptSurprisal } from "./columns.js";
import { visible } from "./marks.js";
import { count, percent, rate } from "./numbers.js";
import { readToken } from "./run.js";
import { Sentence } from "./words.js";

export class Reading {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.token = make("code", "ft-token-big");
    this.figure = make("span");
    this.why = new Sentence(make("p", "ft-why"), words, glossary.term);
    this.list = setAttributes(make("div", "ft-reading-list"), { role: "list", "aria-label": words.say("reading.expected") });
    this.node = box("ft-reading", box("ft-big", this.token, this.figure), this.why.node, this.list);
  }

  show({ run, reading }) {
    const token = readToken(run.started?.prompt?.[reading]);
    const read = run.reading?.[reading] ?? null;
    setText(this.token, visible(token));
    const known = read !== null && read.rank !== null;
    setText(this.figure, known ? percent(read.logprob === null ? 0 : Math.exp(read.logprob), run.figures) : "");
    this.why.show(known ? "reading.why" : reading === 0 ? "reading.first" : "reading.why_unknown", known ? {
      raw: percent(read.logprob === null ? 0 : Math.exp(read.logprob), run.figures), rank: count(read.rank),
      vocabulary: count(run.model.vocabulary), bits: rate(promptSurprisal(read)), entropy: rate(read.entropy_bits),
    } : {});
    this.#list(known ? read : null, token, run);
  }

  #list(read, token, run) {
    const expected = (read?.expected ?? []).map(([wire, logprob], i) => ({ ...readToken(wire), p: Math.exp(logprob), rank: i + 1 }));
    if (read && !expected.some((one) => one.id === token.id)) {
      expected.push({ ...token, p: read.logprob === null ? 0 : Math.exp(read.logprob), rank: read.rank });
    }
    this.list.replaceChildren(...expected.map((one) => this.#row(one, one.id === token.id, run.figures)));
  }

  #row({ rank, p, ...token }, mine, figures) {
    const { words } = this.scene;
    const bar = make("i", "ft-thick");
    bar.style.transform = `scaleX(${p})`;
    const name = make("span", "ft-name", visible(token));
    if (token.special) name.classList.add("ft-pill");
    const row = make("div", `ft-row ft-reading-row${mine ? " ft-chosen" : ""}`);
    row.append(make("span", "ft-rank", count(rank)), name, box("ft-bars", bar), make("b", "ft-number", percent(p, figures)));
    const label = words.say("reading.row", { token: visible(token), p: percent(p, figures) });
    return setAttributes(row, { role: "listitem", "aria-label": label + (mine ? `, ${words.say("reading.there")}` : "") });
  }
}
