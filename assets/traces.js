// The shelf of traces: what there is as cards, a place to drop a file, and files that are saved from here.
//
// The words come from the server with the list. Titles and prompts are whatever a file says: text only.

import { box, button, make, setText } from "./stage/dom.js";
import { save } from "./trace_file.js";

const TYPES = { html: "text/html", csv: "text/csv", jsonl: "application/jsonl" };

/** Put the shelf into `root`; `send(name, data)` asks the server. Returns what takes its answers. */
export function mountShelf(root, send) {
  return new Shelf(root, send).take;
}

class Shelf {
  constructor(root, send) {
    Object.assign(this, { send, words: {} });
    this.take = (packet) => this.#take(packet);
    this.input = make("input", "tr-file");
    this.input.type = "file";
    this.input.accept = ".jsonl,.json,.txt";
    this.input.addEventListener("change", () => this.#read(this.input.files));
    this.name = make("span");
    this.pick = make("label", "tr-pick");
    this.pick.append(this.input, this.name);
    this.hint = make("p", "tr-quiet");
    this.status = make("p", "tr-status");
    this.status.setAttribute("role", "status");
    this.error = make("p", "tr-error");
    this.error.setAttribute("role", "alert");
    this.error.hidden = true;
    this.drop = box("tr-drop", this.pick, this.hint);
    this.groups = make("div", "tr-groups");
    root.classList.add("tr-shelf");
    root.replaceChildren(this.drop, this.status, this.error, this.groups);
    this.#receive(root);
  }

  #take({ list, file, said = "", error = "", opened }) {
    this.drop.removeAttribute("aria-busy");
    setText(this.status, said);
    setText(this.error, error);
    this.error.hidden = !error;
    if (list) this.#list(list);
    if (file) save(file.name, file.text, TYPES[file.kind]);
    if (opened) window.firstToken?.hold(opened.place, opened.run);
  }

  #list({ words, groups }) {
    this.words = words;
    setText(this.name, words.pick);
    setText(this.hint, words.hint);
    const held = document.activeElement?.dataset?.act && document.activeElement;
    const place = held && [held.dataset.key, held.dataset.act];
    this.groups.replaceChildren(...groups.map((group) => this.#group(group)));
    if (place) this.#find(...place)?.focus();
  }

  #find(key, act) {
    return [...this.groups.querySelectorAll("button")].find((one) => one.dataset.key === key && one.dataset.act === act);
  }

  /** What the title of a group says, its cards do not say again: `pill` is left out there. */
  #group({ title, note, rows, pill: said, tools = [] }) {
    const group = make("section", "tr-group");
    const head = box("tr-head", make("h2", "tr-title", title), ...tools.map((tool) => this.#button(tool, "tr-link")));
    group.append(head);
    if (note) group.append(make("p", "tr-quiet", note));
    if (!rows.length) return group;
    const list = make("ul", "tr-cards");
    list.append(...rows.map((row) => this.#card(row, said)));
    group.append(list);
    return group;
  }

  #card({ title, lesson, facts, pill, tools }, told) {
    const card = make("li", "tr-card");
    const name = make("h3", "tr-name", title);
    name.dir = "auto";
    const said = lesson ? [make("p", "tr-lesson", lesson)] : [];
    const [open, ...files] = tools;
    card.append(
      box("tr-card-head", name, ...(pill === told ? [] : [make("span", "tr-pill", pill)])), ...said,
      make("p", "tr-quiet tr-facts", facts),
      box("tr-tools", this.#button(open, "tr-open"), make("span", "tr-quiet", this.words.save_as),
        ...files.map((tool) => this.#button(tool, "tr-link"))),
    );
    return card;
  }

  #button({ act, key, label, name }, className) {
    const made = button(className, label, () => this.#ask(act, key));
    made.setAttribute("aria-label", name);
    Object.assign(made.dataset, { act, key });
    return made;
  }

  #ask(act, key) {
    this.take({ said: this.words.working });
    this.send(act === "open" ? "choose" : "export", { key, kind: act });
  }

  /** Files can be dropped anywhere on the shelf. */
  #receive(root) {
    const over = (on) => this.drop.classList.toggle("tr-over", on);
    root.addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
    root.addEventListener("dragleave", (event) => { if (!root.contains(event.relatedTarget)) over(false); });
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      this.#read(event.dataTransfer?.files ?? []);
    });
  }

  /** A file that is too large is not even read. */
  async #read([file]) {
    if (!file) return;
    const name = file.name.slice(0, 80);
    const { most } = this.words;
    if (file.size > most) this.take({ error: this.words.too_large.replace("{name}", () => name) });
    else {
      this.take({ said: this.words.reading });
      this.drop.setAttribute("aria-busy", "true");
      try {
        this.send("bring", { name, text: new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()) });
      } catch {
        this.take({ error: this.words.not_text.replace("{name}", () => name) });
      }
    }
    this.input.value = "";
  }
}
