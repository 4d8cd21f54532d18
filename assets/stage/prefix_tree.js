// Many draws as a tree of continuations that grows with them, as core/tree.tree makes it. Arithmetic only.

import { visible } from "./marks.js";

/** Whether the lanes differ in nothing but their seeds, so that they are draws of one distribution. */
export function sameSettings(lanes) {
  if (lanes.length < 2 || lanes[0].greedy) return false;
  const written = ({ decoding }) => JSON.stringify({ ...decoding, seed: null, name: "" });
  const first = written(lanes[0]);
  return lanes.every((lane) => written(lane) === first);
}

/** One token, one node; each lane stands on the node of its last token. */
export class PrefixTree {
  constructor() {
    this.made = 0;
    this.lanes = [];
    this.at = [];
    this.steps = 0;
    this.root = this.#node(null, "", 1, "");
  }

  #node(id, text, way, name) {
    this.made += 1;
    return { key: this.made, id, text, way, name, count: 0, tips: 0, lane: null, children: new Map() };
  }

  /** Take in the steps that are new; each is looked at once. */
  grow(lanes) {
    for (const lane of lanes.slice(this.at.length)) {
      this.at.push({ node: this.root, step: 0 });
      Object.assign(this.root, { count: this.root.count + 1, tips: this.root.tips + 1, lane: this.root.lane ?? lane });
    }
    this.lanes = lanes;
    lanes.forEach((lane, i) => {
      for (const at = this.at[i]; at.step < lane.steps.length; at.step += 1) this.#move(at, lane, lane.steps[at.step]);
    });
    return this.steps;
  }

  #move(at, lane, step) {
    const { id } = step.token;
    let next = at.node.children.get(id);
    if (!next) {
      next = this.#node(id, step.text, at.node.way * step.processed_probability, visible(step.token));
      next.lane = lane;
      at.node.children.set(id, next);
    }
    at.node.tips -= 1;
    next.tips += 1;
    next.count += 1;
    at.node = next;
    this.steps += 1;
  }

  /** The branch that begins at `node`: the tokens up to where its draws part, or one of them stops. */
  branch(node = this.root) {
    const taken = node === this.root ? [] : [node];
    let end = node;
    while (end.children.size === 1 && end.tips === 0) {
      [end] = end.children.values();
      taken.push(end);
    }
    const tail = end.children.size || !taken.length ? "" : (end.lane.finished?.tail ?? "");
    const text = taken.map((one) => one.text).join("") + tail;
    const name = taken[0]?.name ?? ""; // of a token that adds no text of its own, the end of the answer for one
    return {
      key: node.key, count: node.count, tips: end.tips, lane: node.lane, ids: taken.map((one) => one.id),
      text: text || name, first: text ? (taken[0]?.text ?? "") : name,
      probability: taken[0]?.way ?? 1, whole: end.way, children: [...end.children.values()].sort(byDraws),
    };
  }

  /** How many different continuations there are from `node` on. */
  endings(node = this.root) {
    let found = 0;
    const open = [node];
    while (open.length) {
      const one = open.pop();
      if (one.tips) found += 1;
      open.push(...one.children.values());
    }
    return found;
  }
}

const byDraws = (a, b) => b.count - a.count || b.way - a.way || a.id - b.id;
