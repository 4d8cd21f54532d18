// The finding of a run in one sentence, then its rates. Every time comes from the run's own clock.

import { box, make, setText } from "./dom.js";
import { count, duration, rate } from "./numbers.js";
import { timing } from "./run.js";
import { Shares } from "./shares.js";
import { Sentence } from "./words.js";

export class Headline {
  constructor(scene) {
    const { words, glossary } = scene;
    this.scene = scene;
    this.lead = new Sentence(make("p", "ft-lead"), words, glossary.term);
    this.rates = new Sentence(make("span"), words, glossary.term, {
      decode: () => scene.prove("decode"), first: () => scene.prove("ttft"),
    });
    this.end = make("span");
    this.shares = new Shares(scene);
    this.lead.node.setAttribute("aria-live", "off");
    this.node = box("ft-headline", this.lead.node, box("ft-sub", this.rates.node, this.end), this.shares.node);
  }

  paint(view) {
    const { run, lane } = view;
    const times = timing(run, lane ?? { steps: [] });
    const steps = lane?.steps.length ?? 0;
    this.#lead(run, lane, times, steps);
    this.#rates(times, steps);
    setText(this.end, lane ? this.#ending(run, lane) : "");
    this.shares.paint(view);
  }

  #lead(run, lane, times, steps) {
    const { words } = this.scene;
    const read = {
      read: words.many("tokens", times.computed, count(times.computed)),
      reused: count(times.reused), time: duration(times.prefill), gap: duration(times.median),
      more: count(Math.max(0, steps - 1)),
    };
    if (!run.started) return this.lead.show("headline.waiting");
    if (!run.prefilled) return this.#reading(run);
    const key = steps > 1 ? "headline.more" : steps === 1 ? "headline.first" : "headline.read";
    return this.lead.show(times.reused ? `${key}_reused` : key, read);
  }

  #reading(run) {
    const { words } = this.scene;
    const total = run.prefilling?.total_tokens ?? run.promptTokens;
    const values = { total: words.many("tokens", total, count(total)) };
    if (!run.prefilling) return this.lead.show("headline.reading", values);
    const { done_tokens: done, seconds } = run.prefilling;
    return this.lead.show("headline.reading_part", { ...values, done: count(done), time: duration(seconds) });
  }

  #rates(times, steps) {
    if (times.prefill === null) return this.rates.clear();
    const key = steps > 2 ? "headline.rates" : "headline.rates_prefill";
    return this.rates.show(times.warmUp ? `${key}_warm` : key, {
      prefill: rate(times.prefillRate), decode: rate(times.decodeRate), p95: duration(times.p95),
      first: duration(times.first),
    });
  }

  #ending(run, lane) {
    const { words } = this.scene;
    if (!lane.done) return run.prefilled ? `\u00a0· ${words.say("finish.running")}` : "";
    const stop = lane.finished?.stop_string ?? "";
    return `\u00a0· ${words.say(`finish.${lane.reason}`, { stop, n: count(lane.steps.length) })}`;
  }
}
