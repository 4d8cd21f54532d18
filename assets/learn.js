// Between gradio's page and the tour: language, what the browser remembers, ways to the other tabs.
// Draws nothing itself; the book does (learn/book.js).

import { Book } from "./learn/book.js";

const here = new URL(".", import.meta.url);
const KEPT = "first-token.learn";
const PATIENCE_MS = 4000;
const AGAIN_MS = 120;

const who = () => JSON.parse(window.firstToken.who());
const text = (language) => fetch(new URL(`i18n/${language}.json`, here)).then((answer) => answer.json());

/** What outlives the page where the browser allows it. */
const store = {
  read() {
    try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; }
  },
  write(value) {
    try { localStorage.setItem(KEPT, JSON.stringify(value)); } catch { /* not allowed here */ }
  },
};

/** Mount the tour in `element`; returns what takes its packets, as JSON strings. */
export async function adapt({ element, trigger }) {
  const book = new Book(element.querySelector(".learn-root"), {
    store, go, ask: (prompt) => trigger("ask", { ...who(), prompt }), words: await text(who().language),
  });
  let spoken = who().language;
  new MutationObserver(async () => {
    const { language } = who();
    if (language === spoken || !element.isConnected) return;
    spoken = language;
    book.speak(await text(language));
  }).observe(document.documentElement, { attributes: true, attributeFilter: ["lang"] });
  book.who = () => JSON.stringify({ ...who(), run: book.material.told.facts?.run });
  window.firstTokenLearn = book;
  trigger("ready", who());
  return (json) => book.packet(JSON.parse(json));
}

/** The ways out of the tour, into the tools themselves. */
const go = {
  run(material) {
    const { run, events, own } = material;
    window.firstTokenStage?.packet({ run: run.id, first: 0, events, label: own ? "" : "recorded" });
    fill("#prompt textarea", run.started.request.prompt);
    show("playground");
  },
  settings({ preset, prompt }) {
    fill("#prompt textarea", prompt);
    const greedy = document.querySelector("#strategy input[value='greedy']");
    if (preset === "greedy") greedy?.click();
    else document.querySelector(`#sampling .preset-${preset}`)?.click();
    show("playground");
  },
  compare: () => show("compare"),
  kv: (section) => show("kv", section),
};

function show(tab, section = null) {
  document.querySelector(`#tabs [data-tab-id="${tab}"]`)?.click();
  if (section) select(`#kv-sections [role="tab"][data-tab-id="${section}"]`);
  window.scrollTo({ top: 0 });
}

function fill(selector, value) {
  const field = document.querySelector(selector);
  if (!field) return;
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** A tab's contents are made when it is first opened, so it may take some tries until a section is selected. */
function select(selector, since = performance.now()) {
  const found = document.querySelector(selector);
  if (found?.getAttribute("aria-selected") === "true") return;
  found?.click();
  if (performance.now() - since < PATIENCE_MS) setTimeout(() => select(selector, since), AGAIN_MS);
}
