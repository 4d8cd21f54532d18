// Chapter 7: the cache from one number up to a full server, beside the weights. Every size is the server's.

import { box, make, setText } from "../stage/dom.js";
import { bytes, count } from "../stage/numbers.js";
import { segmented } from "./choose.js";
import { exact } from "./facts.js";

export class WeightPanel {
  source = "arithmetic";

  constructor(scene) {
    this.scene = scene;
    Object.assign(this, { tokens: 4096, users: 32, heads: null });
    this.pickers = make("div", "ln-pickers");
    this.stairs = make("ol", "ln-stairs");
    this.bars = ["cache", "weights"].map((name) => this.#bar(name));
    this.node = box("", this.pickers, this.stairs, make("h4", "ln-sub", scene.words.say("c7.beside")), box("ln-weights", ...this.bars.map((bar) => bar.node)));
  }

  update(material) {
    if (this.cache) return;
    this.cache = material.lesson.cache;
    this.material = material;
    this.heads = this.cache.token.kv_heads;
    const { words } = this.scene;
    const { cells, query_heads: all, token } = this.cache;
    const set = (name) => (value) => { this[name] = value; this.#show(); };
    const each = (name) => [...new Set(cells.map((cell) => cell[name]))].map((n) => [n, count(n)]);
    this.pickers.append(
      segmented(words.say("c7.heads"), [
        [token.kv_heads, words.say("c7.gqa", { n: count(token.kv_heads) })],
        [all, words.say("c7.mha", { n: count(all) })], [1, words.say("c7.mqa", { n: "1" })],
      ], this.heads, set("heads")),
      segmented(words.say("c7.tokens"), each("tokens"), this.tokens, set("tokens")),
      segmented(words.say("c7.people"), each("users"), this.users, set("users")),
    );
    this.#show();
  }

  destroy() {}

  #bar(name) {
    const bar = { name, fill: make("i", `ln-fill-${name}`), size: make("b", "ft-number") };
    const track = box("ln-track", bar.fill);
    bar.node = box("ln-weight", make("span", "", this.scene.words.say(`c7.${name}`)), track, bar.size);
    return bar;
  }

  #show() {
    const { token, bytes_per_number: size, weights_bytes: weights } = this.cache;
    const one = this.material.cell(this.tokens, 1, this.heads);
    const all = this.material.cell(this.tokens, this.users, this.heads);
    this.stairs.replaceChildren(
      this.#stair("number", size), this.#stair("key", token.key_bytes, { dim: count(token.head_dim) }),
      this.#stair("head", token.head_bytes),
      this.#stair(this.heads === 1 ? "layer_one" : "layer", all.layer_bytes, { heads: count(this.heads) }),
      this.#stair("token", all.each, { layers: count(token.layers) }),
      this.#stair(this.tokens === 1 ? "sequence_one" : "sequence", one.bytes, { n: count(this.tokens) }),
      this.#stair(this.users === 1 ? "users_one" : "users", all.bytes, { n: count(this.users) }, "ln-total"),
    );
    const most = Math.max(all.bytes, weights);
    [all.bytes, weights].forEach((n, i) => {
      this.bars[i].fill.style.transform = `scaleX(${n / most})`;
      setText(this.bars[i].size, bytes(n));
      this.bars[i].size.dataset.value = String(n);
    });
  }

  #stair(name, n, values = {}, kind = "") {
    const { words } = this.scene;
    const item = make("li", `ln-stair ${kind}`);
    item.dataset.step = name;
    item.dataset.bytes = String(n);
    item.append(make("span", "", words.say(`c7.${name}`, values)), make("b", "ft-number", exact(n)), make("span", "ft-quiet ft-number", n < 1024 ? "" : bytes(n)));
    return item;
  }
}
