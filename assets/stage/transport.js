// Step, Play, Pause and Back, and how fast: buttons that say what the server can do with the run on the stage.

import { box, button, make, setAttributes, setText } from "./dom.js";
import { count, duration } from "./numbers.js";

const LEAST_MS = 15;
const SPEEDS = [null, 1, 2, 5, 10, 20];

export class Transport {
  /** `lanes`: several of them, which go and stand together and cannot be wound back. */
  constructor(scene, { lanes = false } = {}) {
    const { words } = scene;
    Object.assign(this, { scene, lanes, timer: null });
    this.back = button("ft-button", words.say("steer.back"), () => this.#back());
    this.step = button("ft-button", words.say("steer.step"), () => this.#send("step"));
    this.play = button("ft-button", words.say("steer.play"), () => this.#send("play"));
    this.pause = button("ft-button", words.say("steer.pause"), () => this.#send("pause"));
    this.replay = button("ft-button", words.say("steer.replay"), () => this.#replay());
    this.replay.hidden = true;
    this.speed = setAttributes(make("select", "ft-select"), { "aria-label": words.say("steer.speed") });
    SPEEDS.forEach((speed) => this.speed.append(this.#option(speed)));
    this.speed.addEventListener("change", () => {
      if (this.#live()) this.#send("speed", { tokens_per_second: Number(this.speed.value) || null });
    });
    this.said = make("p", "ft-quiet ft-transport-said");
    this.said.setAttribute("aria-live", "polite");
    this.bar = box("ft-transport-bar", ...(lanes ? [] : [this.back]), this.step, this.play, this.pause, this.replay, this.speed);
    setAttributes(this.bar, { role: "group", "aria-label": words.say("steer.name") });
    this.node = box("ft-transport", this.bar, this.said);
    this.node.hidden = true;
  }

  reset() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  paint({ run, lane, cursor, steering }) {
    Object.assign(this, { run, lane, cursor, steering: steering ?? null });
    this.node.hidden = Boolean(this.scene.alone) || (this.lanes && !steering);
    if (this.node.hidden) return;
    const { words } = this.scene;
    const state = steering?.state ?? "none";
    const can = steering ? steering.can && !(this.lanes && state === "ended") : true;
    this.play.disabled = state === "playing" || !can;
    this.step.disabled = !can;
    this.pause.disabled = state !== "playing";
    this.replay.hidden = this.lanes || !run.done || (lane?.steps.length ?? 0) < 2;
    setText(this.replay, words.say(this.timer ? "steer.replay_stop" : "steer.replay"));
    this.speed.disabled = this.replay.hidden && !this.#live();
    this.back.disabled = !steering?.back || !lane?.steps.length;
    const away = this.#away();
    this.back.title = this.back.disabled ? "" : words.many("steer.back_by", away, count(away));
    for (const one of [this.play, this.step]) one.title = can ? "" : steering.why;
    this.play.title ||= words.say("steer.play_key");
    this.step.title ||= words.say("steer.step_key");
    const speed = String(steering?.tokens_per_second ?? "");
    if (this.#live() && document.activeElement !== this.speed && this.speed.value !== speed) this.speed.value = speed;
    setText(this.said, this.#telling(state));
  }

  /** "." steps and "," goes back; anywhere on the stage but where something is typed. */
  onKey(event) {
    if (this.node.hidden || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.target.closest?.(":is(input,textarea,select)")) return false;
    const press = { ".": this.step, ",": this.back }[event.key];
    if (!press || press.disabled || !press.isConnected) return false;
    event.preventDefault();
    press.click();
    return true;
  }

  #live() {
    return ["playing", "paused"].includes(this.steering?.state);
  }

  /** Walk the cursor over the record, from the first token, at the chosen speed or as the tokens came. */
  #replay() {
    if (this.timer) this.#arrived();
    else this.#walk(0);
  }

  #walk(i) {
    const steps = this.lane?.steps ?? [];
    if (i >= steps.length || (i > 0 && this.cursor !== i - 1)) return this.#arrived();
    const own = i + 1 < steps.length ? steps[i + 1].end_seconds - steps[i].end_seconds : 0;
    const pace = Number(this.speed.value);
    this.timer = setTimeout(() => this.#walk(i + 1), Math.max(LEAST_MS, 1000 * (pace ? 1 / pace : own)));
    this.cursor = i;
    this.scene.move(i, {});
    return null;
  }

  #arrived() {
    this.reset();
    this.scene.move(this.cursor, {});
    return null;
  }

  #option(speed) {
    const { words } = this.scene;
    const text = speed === null ? words.say("steer.fast") : words.many("steer.a_second", speed, count(speed));
    return setAttributes(make("option", "", text), { value: speed ?? "" });
  }

  /** How many tokens Back takes off: all after the cursor, or the last one. */
  #away() {
    const n = this.lane?.steps.length ?? 0;
    return this.cursor >= 0 && this.cursor < n - 1 ? n - 1 - this.cursor : 1;
  }

  #back() {
    this.#send("back", { step: Math.max(0, this.lane.steps.length - this.#away()) });
  }

  #send(action, more = {}) {
    this.scene.send("steer", { run: this.run?.id ?? "", action, ...more });
  }

  #telling(state) {
    const { words } = this.scene;
    if (state === "paused") return words.say("steer.paused");
    const last = this.lane?.resumed?.at(-1);
    if (!last) return this.lanes ? "" : this.steering?.why ?? "";
    const saved = last.saved_seconds ? words.say("steer.saved", { time: duration(last.saved_seconds) }) : "";
    const notes = (last.notes ?? []).map(({ key, text, detail }) =>
      (words.has(`notes.${key}`) ? words.say(`notes.${key}`, { detail }) : text)).join(" ");
    const reused = words.say("steer.went_on", { n: count(last.step + 1), computed: words.many("steer.positions", last.tokens_computed, count(last.tokens_computed)), reused: count(last.tokens_reused) });
    return `${reused}${saved} ${notes}`.trim();
  }
}
