// The table of candidates: fixed rows that are refilled, bars that move by transform.

import { box, make, setAttributes, setText } from "./dom.js";
import { visible } from "./marks.js";
import { count, percent } from "./numbers.js";
import { stageName, stageWithValue } from "./settings.js";

const ROW_PX = 25;
const TOUCH_ROW_PX = 40;
const TOUCH = "(max-width: 640px)";
const CUT_PX = 22;
const CUTS_RESERVED = 1;
const LONG = 10;

export class Rows {
  /** `taking`: what lets a row be taken (see taking.js), null for rows to be read only. */
  constructor(scene, taking = null) {
    Object.assign(this, { scene, taking });
    this.rows = [];
    this.cuts = [];
    this.list = make("div", "ft-rows");
    this.list.setAttribute("role", "list");
    taking?.watch(this.list);
    this.rest = this.#row();
    this.rest.node.classList.add("ft-rest");
    this.node = box("ft-table", this.#head(), this.list);
  }

  #head() {
    const { words, glossary } = this.scene;
    const cell = (className, term, key) => {
      const node = make("span", className);
      node.append(term ? glossary.term(term, words.say(key)) : words.say(key));
      return node;
    };
    return box("ft-row ft-head", make("span"), cell("", null, "candidates.token"), make("span"),
      cell("ft-number", "processed", "candidates.processed"), cell("ft-number", "raw", "candidates.raw"));
  }

  /** Show `found` (see choices.js) with room for `reserved` rows. */
  show(found, step, lane, figures, reserved) {
    found.rows.forEach((row, i) => this.#fill(this.#at(i), row, step, figures));
    this.rows.forEach((row, i) => { row.node.hidden = i >= found.rows.length; });
    this.#fillRest(found.others, figures);
    this.#place(found, lane, reserved);
  }

  #at(i) {
    if (!this.rows[i]) this.taking?.attach((this.rows[i] = this.#row()));
    return (this.rows[i] ??= this.#row());
  }

  #row() {
    const row = {
      node: make("div", "ft-row"), rank: make("span", "ft-rank"), token: make("span", "ft-name"),
      thick: make("i", "ft-thick"), thin: make("i", "ft-thin"), tag: make("i", "ft-tag"),
      processed: make("b", "ft-number"), raw: make("span", "ft-number"),
    };
    row.node.setAttribute("role", "listitem");
    const bars = make("span", "ft-bars");
    bars.append(row.thick, row.thin, row.tag);
    row.node.append(row.rank, row.token, bars, row.processed, row.raw);
    this.list.append(row.node);
    return row;
  }

  #fill(row, candidate, step, figures) {
    const { words } = this.scene;
    const name = visible(candidate);
    const chosen = candidate.id === step.token.id;
    row.node.classList.toggle("ft-chosen", chosen);
    row.node.classList.toggle("ft-removed", Boolean(candidate.removedBy));
    row.node.classList.toggle("ft-far", candidate.rank > 999);
    row.token.classList.toggle("ft-pill", candidate.special);
    setText(row.rank, count(candidate.rank));
    setText(row.token, name);
    setText(row.tag, candidate.removedBy ? stageName(words, candidate.removedBy) : "");
    row.tag.hidden = !candidate.removedBy;
    this.#masses(row, candidate, figures);
    this.taking?.fill(row, candidate, figures);
    const key = candidate.removedBy ? "candidates.row_removed" : "candidates.row";
    const label = words.say(key, {
      token: name, raw: percent(candidate.raw, figures), processed: percent(candidate.processed, figures),
      stage: stageName(words, candidate.removedBy ?? ""),
    });
    setAttributes(row.node, {
      "aria-label": label + (chosen ? `, ${words.say("candidates.chosen")}` : ""),
      "data-id": candidate.id, "data-removed": candidate.removedBy ?? "",
      title: candidate.special ? words.say("candidates.special") : name.length > LONG ? name : "",
    });
  }

  #masses(row, { raw, processed }, figures) {
    row.thick.style.transform = `scaleX(${processed})`;
    row.thin.style.transform = `scaleX(${raw})`;
    row.thick.classList.toggle("ft-none", processed === 0);
    setText(row.processed, percent(processed, figures));
    setText(row.raw, percent(raw, figures));
    setAttributes(row.node, { "data-raw": raw, "data-processed": processed });
  }

  #fillRest({ count: n, raw, processed }, figures) {
    const { words } = this.scene;
    const name = words.say("candidates.others", { n: count(n) });
    setText(this.rest.token, name);
    this.#masses(this.rest, { raw, processed }, figures);
    setAttributes(this.rest.node, {
      "data-rest": n, "aria-label": words.say("candidates.row", {
        token: name, raw: percent(raw, figures), processed: percent(processed, figures),
      }),
    });
  }

  #place(found, lane, reserved) {
    let y = 0;
    const pitch = this.taking && window.matchMedia(TOUCH).matches ? TOUCH_ROW_PX : ROW_PX;
    const cuts = new Map(found.cuts.map((cut) => [cut.before, cut]));
    let used = 0;
    found.rows.forEach((row, i) => {
      if (cuts.has(i)) {
        this.#cut(used, cuts.get(i), lane, y);
        used += 1;
        y += CUT_PX;
      }
      this.rows[i].node.style.transform = `translateY(${y}px)`;
      y += pitch;
    });
    this.cuts.forEach((cut, i) => { cut.hidden = i >= used; });
    const room = Math.max(y, reserved * pitch + CUTS_RESERVED * CUT_PX);
    this.rest.node.style.transform = `translateY(${room}px)`;
    this.list.style.height = `${room + pitch}px`;
  }

  #cut(i, { stage }, lane, y) {
    const { words } = this.scene;
    const cut = (this.cuts[i] ??= this.list.appendChild(make("div", "ft-cut")));
    const name = stage === "greedy" ? stageName(words, stage) : stageWithValue(words, stage, lane.decoding);
    setText(cut, words.say("candidates.cut", { stage: name }));
    cut.setAttribute("aria-hidden", "true");
    cut.style.transform = `translateY(${y}px)`;
  }
}
