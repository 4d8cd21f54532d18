// How a run's time parts between its two phases, as a bar and a line, and what decode waited for.
//
// As playground/core/phases.py: decode are the steps after the first token, whose choice belongs to neither
// phase. The verdict comes from the server in a packet of its own once the run has ended: it takes a
// measurement of the device.

import { box, make, setAttributes, setText } from "./dom.js";
import { bytes, duration, percent, rate } from "./numbers.js";
import { timing } from "./run.js";
import { Sentence } from "./words.js";

export class Shares {
  constructor({ words, glossary }) {
    this.prefill = make("i", "ft-share-prefill");
    this.decode = make("i", "ft-share-decode");
    this.bar = setAttributes(box("ft-meter ft-shares", this.prefill, this.decode), { "aria-hidden": "true" });
    this.line = new Sentence(make("span"), words, glossary.term);
    this.between = make("span");
    this.verdict = new Sentence(make("span"), words, glossary.term);
    this.node = box("ft-phases", this.bar, box("ft-share-line", this.line.node, this.between, this.verdict.node));
  }

  paint({ run, lane, cost }) {
    const reading = Boolean(run.started) && !run.prefilled && !run.done;
    const { share, total } = phases(run, lane);
    this.bar.classList.toggle("ft-on", reading || share !== null);
    if (reading) this.#progress(run);
    else this.#parts(share, total);
    this.#verdict(lane?.done && cost?.run === run.id ? cost : null);
  }

  #progress({ prefilling }) {
    const part = prefilling ? prefilling.done_tokens / Math.max(1, prefilling.total_tokens) : 0;
    this.prefill.style.width = `${100 * part}%`;
    this.decode.style.width = "0";
    this.line.clear();
  }

  #parts(share, total) {
    this.prefill.style.width = `${100 * (share ?? 0)}%`;
    this.decode.style.width = share === null ? "0" : `${100 * (1 - share)}%`;
    if (share === null) return this.line.clear();
    const [prefill, decode] = inPerCent(share);
    return this.line.show("phases.line", { prefill, decode, total: duration(total) });
  }

  #verdict(cost) {
    setText(this.between, cost ? "\u00a0· " : "");
    if (!cost) return this.verdict.clear();
    return this.verdict.show(`phases.${cost.limit}`, {
      read: bytes(cost.read_bytes), floor: duration(cost.floor_seconds), step: duration(cost.step_seconds),
      bandwidth: rate(cost.bytes_per_second / 1e9), flops: rate(cost.flops_per_second / 1e9),
      share: percent(Math.min(1, cost.share), 2),
    });
  }
}

const summed = new WeakMap();

/** Seconds of all steps after the first token; what was summed before is kept. */
function decodeSeconds({ steps }) {
  const held = summed.get(steps) ?? { n: 1, seconds: 0 };
  for (; held.n < steps.length; held.n += 1) held.seconds += steps[held.n].end_seconds - steps[held.n].start_seconds;
  summed.set(steps, held);
  return held.seconds;
}

/** The prefill's share of prefill and decode together, and their sum in seconds; null until both are there. */
export function phases(run, lane) {
  const { prefill } = timing(run, { steps: [] });
  const decode = lane ? decodeSeconds(lane) : 0;
  const total = prefill + decode;
  return prefill === null || !(decode > 0) ? { share: null, total: null } : { share: prefill / total, total };
}

/** Both shares with as many decimals as the smaller one needs, so that they make 100. */
function inPerCent(share) {
  const smaller = 100 * Math.min(share, 1 - share);
  const decimals = smaller < 1 ? 1 : 0;
  const written = Math.max(decimals ? 0.1 : 1, Number(smaller.toFixed(decimals)));
  const [low, high] = [written, 100 - written].map((value) => `${value.toFixed(decimals)} %`);
  return share < 0.5 ? [low, high] : [high, low];
}
