// The live stage: a run in the browser, from packets of events to a page that can be explored.
//
// Knows no server, no Gradio and no language: packets come in through the handle, strings through
// `text`, and what goes out are wishes by send(name, {run, ...}): "gap" (events lacked),
// "steer" (how the run goes on), "inspect" (a lane as a run of its own), "ask" (what a step would have been otherwise), "set" (settings that the page's
// controls are to show) and "use" (a run like this one with other settings: {request, settings}).

import { CompareLayout } from "./stage/compare_layout.js";
import { make } from "./stage/dom.js";
import { Glossary } from "./stage/glossary.js";
import { Intake } from "./stage/intake.js";
import { RaceLayout } from "./stage/race_layout.js";
import { RunLayout } from "./stage/run_layout.js";
import { Words } from "./stage/words.js";
import { WorkLayout } from "./stage/work_layout.js";

const LAYOUTS = { run: RunLayout, compare: CompareLayout, race: RaceLayout, work: WorkLayout };
const SIDE = { label: null, note: "", progress: null, error: "", cost: null, work: null, steering: null, answer: null };

/**
 * Put a stage into `root`. `send(name, data)` asks the outside world (without it nobody is there to be asked), `theme` is "light", "dark" or
 * null (the page's own), `text` the strings, `layout` one of those above.
 */
export function mount(root, { send = null, theme = null, text = {}, layout = "run" } = {}) {
  return new Stage(root, { send, theme, text, layout }).handle;
}

class Stage {
  constructor(root, { send, theme, text, layout }) {
    Object.assign(this, { root, alone: send === null, send: send ?? (() => {}), layout, side: { ...SIDE }, raf: 0, frame: () => this.#paint() });
    this.intake = new Intake(this.send, LAYOUTS[layout].record);
    this.root.classList.add("ft-stage");
    this.#setTheme(theme);
    this.#build(text);
    this.handle = {
      packet: (packet) => this.#packet(packet),
      setText: (words) => this.#rebuild(words),
      destroy: () => this.#destroy(),
      tour: (on = true) => this.#tour(on),
      counters: this.intake.counters,
    };
  }

  #build(text) {
    this.words = new Words(text);
    this.frameBox = make("div", "ft-frame");
    this.layer = make("div", "ft-layer");
    const glossary = new Glossary(this.words, this.layer);
    const scene = { words: this.words, glossary, state: () => this.#state(), send: this.send, alone: this.alone };
    this.glossary = glossary;
    this.view = new LAYOUTS[this.layout](scene, this.layer, this.root);
    this.frameBox.append(this.view.node);
    this.root.replaceChildren(this.frameBox, this.layer);
    this.#schedule();
  }

  #rebuild(text) {
    const { cursor, following } = this.view;
    this.#clear();
    this.#build(text);
    Object.assign(this.view, { cursor, following });
  }

  #packet(packet) {
    if (packet === null || typeof packet !== "object") return;
    if (packet.theme) this.#setTheme(packet.theme);
    if (packet.text) this.#rebuild(packet.text);
    const { reset } = this.intake.accept(packet);
    if (reset) {
      this.side = { ...SIDE };
      this.view.reset();
    }
    if (packet.answer) this.view.hear?.(packet.answer);
    for (const name of Object.keys(SIDE)) if (name in packet) this.side[name] = packet[name];
    this.#schedule();
  }

  #state() {
    return { run: this.intake.run, ...this.side };
  }

  #schedule() {
    const { counters } = this.intake;
    counters.backlog = this.view.steps(this.intake.run) - (counters.painted ?? 0);
    if (!this.raf) this.raf = requestAnimationFrame(this.frame);
  }

  #paint() {
    this.raf = 0;
    const { counters, run } = this.intake;
    counters.painted = this.view.paint(this.#state());
    counters.backlog = this.view.steps(run) - counters.painted;
    if (counters.backlog > 0) this.#schedule();
  }

  #tour(on) {
    if (on) this.view.tour?.start();
    else this.view.tour?.end();
  }

  #setTheme(theme) {
    if (theme === "light" || theme === "dark") this.root.dataset.theme = theme;
    else delete this.root.dataset.theme;
  }

  #clear() {
    if (this.raf) cancelAnimationFrame(this.raf);
    this.raf = 0;
    this.view.destroy();
    this.glossary.destroy();
  }

  #destroy() {
    this.#clear();
    this.root.replaceChildren();
    this.root.classList.remove("ft-stage");
  }
}
