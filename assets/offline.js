// A recorded run in a file of its own: the stage, a play button, and nothing that is asked of anybody.
//
// views/offline.py puts this, all that it imports, the words and the record into one HTML file.

import { Player } from "./player.js";
import { mount } from "./stage.js";
import { button, make, setText } from "./stage/dom.js";
import { count } from "./stage/numbers.js";
import { save, traceText } from "./trace_file.js";

const RATES = [5, 27, 100];
const data = JSON.parse(document.getElementById("first-token-data").textContent);
const place = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.language = data.words[data.language] ? data.language : Object.keys(data.words)[0];
    this.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.at = 0;
    this.play = button("of-button of-main", "", () => this.player.toggle());
    this.end = button("of-button", "", () => this.player.end());
    this.save = button("of-link", "", () => this.#save());
    this.pace = this.#select((value) => this.player.setRate(Number(value) || null));
    this.which = this.#select((value) => this.show(Number(value)));
    this.progress = make("span", "of-quiet");
    this.dark = button("of-chip", "", () => this.setTheme(this.theme === "dark" ? "light" : "dark"));
    this.other = button("of-chip", "", () => this.speak(this.#next()));
    place("of-chips").append(this.dark, this.other);
    place("of-player").append(this.play, this.end, this.pace.label, this.which.label, this.progress, this.save);
    this.other.hidden = Object.keys(data.words).length < 2;
    this.which.label.hidden = data.records.length < 2;
    this.setTheme(this.theme);
    this.show(0);
    this.speak(this.language);
  }

  /** Show one record, whole. */
  show(at) {
    this.player?.stop();
    this.handle?.destroy();
    this.at = at;
    const { layout, packet } = data.records[at];
    this.handle = mount(place("of-stage"), {
      theme: this.theme, text: data.words[this.language].stage, layout,
    });
    this.player = new Player(this.handle, packet, layout === "race", () => this.#follow());
    this.player.end();
    window.firstTokenStage = this.handle;
    this.#say();
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    this.dark.setAttribute("aria-pressed", String(theme === "dark"));
    this.handle?.packet({ theme });
  }

  speak(language) {
    this.language = language;
    document.documentElement.lang = data.words[language].lang;
    this.handle.setText(data.words[language].stage);
    this.#say();
  }

  #say() {
    const words = data.words[this.language].offline;
    const record = data.records[this.at];
    const said = record.says[this.language];
    for (const name of ["title", "lesson", "facts"]) {
      setText(place(`of-${name}`), said[name]);
      place(`of-${name}`).hidden = !said[name];
    }
    document.title = `${said.title} · First Token`;
    setText(place("of-foot"), words.made);
    place("of-player").setAttribute("aria-label", words.player);
    setText(this.end, words.end);
    setText(this.save, words.save);
    setText(this.dark, words.dark);
    const next = data.words[this.#next()];
    setText(this.other, next.name);
    this.other.lang = next.lang;
    setText(this.pace.name, words.pace);
    this.#options(this.pace, [["", words.pace_recorded], ...RATES.map((n) => [String(n), words.pace_rate.replace("{n}", String(n))])]);
    setText(this.which.name, words.which);
    this.#options(this.which, data.records.map((one, i) => [String(i), one.says[this.language].title]));
    this.#follow();
  }

  /** The record itself, to be opened in a playground. */
  #save() {
    const { packet } = data.records[this.at];
    save(`${data.name}.jsonl`, traceText(packet), "application/jsonl");
  }

  #follow() {
    const words = data.words[this.language].offline;
    const { playing, steps, total } = this.player ?? {};
    setText(this.play, playing ? words.pause : words.play);
    setText(this.progress, words.progress.replace("{done}", count(steps)).replace("{total}", count(total)));
  }

  #next() {
    const all = Object.keys(data.words);
    return all[(all.indexOf(this.language) + 1) % all.length];
  }

  #select(react) {
    const select = make("select", "of-select");
    const name = make("span", "of-quiet");
    const label = make("label", "of-choice");
    label.append(name, select);
    select.addEventListener("change", () => react(select.value));
    return { select, name, label };
  }

  #options({ select }, options) {
    const { value } = select;
    select.replaceChildren(...options.map(([key, text]) => {
      const option = make("option", "", text);
      option.value = key;
      return option;
    }));
    select.value = options.some(([key]) => key === value) ? value : options[0][0];
  }
}

window.firstTokenPage = new Page();
