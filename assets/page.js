// Between gradio's page and the stage: who this tab is, language, theme, keys, and the adapter that
// feeds packets to stage.js. Draws nothing of a run. Text goes in by textContent only.

import { address, linkIn, modelName, withSeeds } from "./links.js";

const fact = (name) => document.querySelector(`meta[name="first-token-${name}"]`)?.content ?? "";
const LANGUAGES = (fact("languages") || "en").split(" ");
const NAMES = { float32: "fp32", bfloat16: "bf16", float16: "fp16" };
const here = new URL(".", import.meta.url);
const mounted = [];
const texts = new Map();

/** A value that outlives the page where the browser allows it, and lasts as long as the page elsewhere. */
function memory(store) {
  const own = new Map();
  return {
    get: (key) => { try { return store().getItem(key) ?? own.get(key) ?? null; } catch { return own.get(key) ?? null; } },
    set: (key, value) => { own.set(key, value); try { store().setItem(key, value); } catch { /* not allowed here */ } },
  };
}
const tab = memory(() => sessionStorage);
const browser = memory(() => localStorage);

/** 128 random bits that only this tab knows; the server keeps the tab's runs under them. */
function session() {
  const known = tab.get("first-token.session");
  if (/^[0-9a-f]{32}$/.test(known ?? "")) return known;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const made = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  tab.set("first-token.session", made);
  return made;
}

function language() {
  const chosen = browser.get("first-token.language");
  if (LANGUAGES.includes(chosen)) return chosen;
  const own = (navigator.language ?? "").toLowerCase();
  return LANGUAGES.find((one) => own === one || own.startsWith(`${one}-`)) ?? LANGUAGES[0];
}

function theme() {
  const chosen = browser.get("first-token.theme");
  if (chosen === "dark" || chosen === "light") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function applyTheme() {
  document.body.classList.toggle("dark", theme() === "dark");
  document.documentElement.style.colorScheme = theme();
  for (const { handle } of mounted) handle.packet({ theme: theme() });
  const button = document.getElementById("theme");
  button?.setAttribute("aria-pressed", String(theme() === "dark"));
}

async function text(of = language()) {
  if (!texts.has(of)) texts.set(of, fetch(new URL(`i18n/${of}.json`, here)).then((answer) => answer.json()));
  return texts.get(of);
}

async function speak() {
  const words = await text();
  document.documentElement.lang = words.page.lang;
  for (const { handle } of mounted) handle.setText(words.stage);
  showModel();
  showSeed();
}

/**
 * What every event of the page carries: the tab's token, its language, a number that grows with each
 * event (requests can overtake each other on their way; a copied tab and a clock set back keep it
 * growing), and the run of a stage if asked.
 */
function who(layout) {
  const run = layout ? tab.get(`first-token.run.${layout}`) : undefined;
  const wish = Math.max(Number(tab.get("first-token.wish")) + 1, Date.now() * 1000);
  tab.set("first-token.wish", String(wish));
  return JSON.stringify({ session: session(), language: language(), wish, run });
}

window.firstToken = {
  who,
  toggleLanguage() {
    browser.set("first-token.language", LANGUAGES[(LANGUAGES.indexOf(language()) + 1) % LANGUAGES.length]);
    speak();
    return who();
  },
  toggleTheme() {
    browser.set("first-token.theme", theme() === "dark" ? "light" : "dark");
    applyTheme();
  },
  /** The run that the stage of `layout` is to show, now or as soon as it is there. */
  hold(layout, run) {
    tab.set(`first-token.run.${layout}`, run);
    for (const one of mounted) if (one.layout === layout) one.overtaken.delete(run);
  },
  copyLink,
  tour() {
    visible()?.handle.tour?.(true);
  },
};

function visible() {
  return mounted.find(({ element }) => element.isConnected && element.offsetParent !== null);
}

/** The name under which a stage can be reached: firstTokenStage for the first, firstTokenRace and so on. */
const handleName = (layout) => `firstToken${layout === "run" ? "Stage" : layout[0].toUpperCase() + layout.slice(1)}`;

/** What a stage may ask of the server: see stage.js. */
const WISHES = ["gap", "steer", "ask", "inspect"];

/** Mount a stage in `element`; returns what takes its packets, as JSON strings. */
export async function adapt({ element, trigger, layout }) {
  const [{ mount }, words] = await Promise.all([import(new URL("stage.js", here)), text()]);
  const root = element.querySelector(".stage-root");
  const wish = (name, data = {}) => trigger(name, { session: session(), language: language(), ...data });
  const overtaken = new Set();
  const send = (name, data) => {
    if (name === "use") use(data);
    if (name === "set") set(data);
    if (data?.branch) overtaken.delete(data.branch);  // it is asked for again
    if (WISHES.includes(name)) trigger(name, { ...JSON.parse(who()), ...data });
  };
  const handle = mount(root, {
    send,
    theme: theme(), text: words.stage, layout,
  });
  for (const old of mounted.filter((one) => !one.element.isConnected)) mounted.splice(mounted.indexOf(old), 1);
  mounted.push({ element, handle, layout, overtaken });
  window[handleName(layout)] = handle;
  const place = `first-token.run.${layout}`;
  wish("ready", { run: tab.get(place), linked: taken || fresh() });
  if (layout === "run" && language() !== LANGUAGES[0]) wish("language");
  let current = null;
  return (json) => {
    const packet = JSON.parse(json);
    if (packet.run && overtaken.has(packet.run)) return;
    if (packet.run && packet.run !== current) {
      if (current) overtaken.add(current);
      current = packet.run;
      if (packet.label !== "recorded") tab.set(place, packet.run);
    }
    if (asked && packet.run && packet.label !== "recorded") {
      asked = false;
      if (innerWidth <= ONE_COLUMN) element.scrollIntoView({ block: "start", behavior: still() ? "auto" : "smooth" });
    }
    if (packet.model) {
      showModel(packet.model);
      document.body.classList.toggle("model-suggests", packet.suggests === true);
    }
    if (layout === "run") noteSeed(packet);
    if (layout === "compare") noteSeeds(packet);
    handle.packet(packet);
    window.dispatchEvent(new CustomEvent("first-token-packet", { detail: packet }));
  };
}

// A row of tabs that scrolls shows the one that was pressed, and its neighbours.
document.addEventListener("click", (event) => {
  event.target.closest?.("[role='tab']")?.scrollIntoView({ block: "nearest", inline: "center", behavior: still() ? "auto" : "smooth" });
});

// On a phone the stage lies below the controls: a run that was asked for is scrolled to, once.
const ONE_COLUMN = 700;
let asked = false;
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
document.addEventListener("click", (event) => {
  if (event.target.closest?.("#generate, #generate-all, #race-start")) asked = true;
}, true);

let model = null;
async function showModel(now = model) {
  model = now;
  const chip = document.querySelector("#device-chip .chip");
  if (!chip) return;
  const words = (await text()).page;
  const cores = /^CPU, (\d+) cores$/.exec(model?.device_name ?? "")?.[1];
  const place = cores ? words.cores.replace("{n}", cores) : model?.device_name || model?.device;
  chip.textContent = model ? `${NAMES[model.dtype] ?? model.dtype} · ${place}` : words.model_loading;
  if (model) chip.title = [model.name, model.device_name].filter(Boolean).join(", ");
}

let seed = null;
function noteSeed(packet) {
  const started = packet.events?.find((event) => event.event === "started");
  if (!started || packet.label === "recorded") return;
  const decoding = started.request?.lanes?.[0] ?? {};
  const greedy = decoding.strategy === "greedy" || decoding.temperature === 0;
  seed = greedy ? null : decoding.seed;
  showSeed();
}

/** Put a lane's settings, and what its run was asked, into the controls and press Generate: see stage.js. */
async function use({ request = {}, settings = {} }) {
  // A closed fold holds no controls: what the settings change there must be there first.
  for (const fold of document.querySelectorAll("#controls .fold")) unfold(fold);
  await new Promise((done) => setTimeout(done, SETTLED_MS));
  if (request.prompt) fill(document.querySelector("#prompt textarea"), request.prompt);
  if (request.prompt) pick("mode", request.chat === false ? "raw" : "chat");
  fill(document.querySelector("#system textarea"), request.system ?? "");
  pick("strategy", settings.strategy);
  write(settings);
  pick("control-penalty_scope", settings.penalty_scope);
  await new Promise((done) => setTimeout(done, SETTLED_MS)); // gradio reads its controls a moment after they changed
  press("generate");
}

/** Let the controls say `settings`; nothing is pressed. */
async function set(settings) {
  for (const fold of document.querySelectorAll("#controls .fold")) unfold(fold);
  await new Promise((done) => setTimeout(done, SETTLED_MS));
  write(settings);
}

function write(settings) {
  for (const [name, value] of Object.entries(settings)) {
    if (["string", "number"].includes(typeof value)) fill(document.querySelector(`#control-${name} :is(input[type="number"], input[type="text"], textarea)`), String(value));
  }
}

const SETTLED_MS = 150;
const unfold = (fold) => { if (fold.querySelector("button.label-wrap:not(.open)")) fold.querySelector("button.label-wrap").click(); };

function pick(id, value) {
  document.querySelector(`#${id} input[type="radio"][value="${CSS.escape(String(value))}"]`)?.click();
}

/** Write into a control as a person does: gradio listens to the events. */
function fill(field, value) {
  if (!field || field.value === value) return;
  const owner = field instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(owner.prototype, "value").set.call(field, value);
  for (const name of ["input", "change", "blur"]) field.dispatchEvent(new Event(name, { bubbles: true }));
}

let seeds = [];
function noteSeeds(packet) {
  const started = packet.events?.find((event) => event.event === "started");
  if (started) seeds = packet.label === "recorded" ? [] : (started.request?.lanes ?? []).map((lane) => lane.seed);
}

async function showSeed() {
  const place = document.querySelector("#drawn-seed .drawn-seed");
  if (!place) return;
  const words = (await text()).controls;
  place.textContent = seed === null ? "" : words.drawn_seed.replace("{seed}", String(seed));
}

/** The link in the address, whether or not the page has followed it. */
const asking = () => linkIn(location.hash, location.search);

/** Whether the address asks for something that this tab has not shown yet. */
function fresh() {
  const link = asking();
  return link !== null && (link !== tab.get("first-token.link") || !tab.get("first-token.run.run"));
}

let taken = false;

/** Hand the link in the address to `take`, now and whenever another one is put there; a reload keeps what was changed. */
export function arrivals(take) {
  const arrive = () => {
    if (!fresh()) return;
    const link = asking();
    tab.set("first-token.link", link);
    taken = true;
    take({ link, session: session(), language: language() });
  };
  addEventListener("hashchange", arrive);
  arrive();
}

/** On a Space the page stands in a frame: the address to pass on is the one around it. */
const base = () => (fact("space") && window.parent !== window ? fact("space") : location.origin + location.pathname);

async function copyLink(place, names, values) {
  const asked = Object.fromEntries(names.map((name, i) => [name, values[i]]));
  const lanes = names.filter((one) => one.startsWith("lane-"));
  for (const name of lanes) if (!document.getElementById(name)?.offsetParent) delete asked[name];
  const shown = lanes.filter((name) => name in asked);
  withSeeds(shown.map((name) => String(asked[name])), seeds).forEach((spec, i) => { asked[shown[i]] = spec; });
  asked.model = modelName(String(asked.model ?? ""));
  if (model?.revision && modelName(model.name ?? "").endsWith(asked.model.split("/").at(-1))) asked.revision = model.revision;
  if (place === "playground" && seed !== null && asked.seed === "") asked.seed = seed;
  await offer(place, address(base(), place, asked));
}

/** Put `link` on the clipboard; where the browser does not let us, in a field to be copied by hand. */
async function offer(place, link) {
  const words = (await text()).links;
  const control = document.getElementById(`link-${place}`);
  const [said, field] = [control.querySelector(".link-copied"), control.querySelector(".link-address")];
  let byHand = false;
  try { if (link) await navigator.clipboard.writeText(link); } catch { byHand = true; }
  said.textContent = link === null ? words.too_long : byHand ? words.by_hand : words.copied;
  field.hidden = !byHand;
  field.value = link ?? "";
  if (byHand) field.select();
}

function press(id) {
  const button = document.getElementById(id);
  if (!button || button.offsetParent === null) return false;
  button.click();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    // gradio reads a text when it changes; nothing is waiting by the time this runs
    if (press("generate") || press("generate-all") || press("race-start")) event.preventDefault();
  }
}, true);

// After everyone else: an Escape that closes a list, a definition or a sheet does not stop the run.
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || event.target.closest?.("[role='combobox']")) return;
  press("stop") || press("stop-all") || press("race-stop");
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
applyTheme();
speak();
// gradio sets its own theme while it starts: ours is put back whenever the two differ
new MutationObserver(() => {
  if (document.body.classList.contains("dark") !== (theme() === "dark")) applyTheme();
}).observe(document.body, { attributes: true, attributeFilter: ["class"] });
