// An address that asks the page for a prompt and its settings: written here, read by playground/ui/links.py.
//
// It stands after the #, which the browser keeps to itself. Pure: knows no page and no clipboard.

const VERSION = "1";
const CHARACTERS_LIMIT = 32000;

/**
 * The link in `hash` (or, where there is none, in `search`), without its mark; null where there is none.
 * Of one that is too long no more than shows that it is.
 */
export function linkIn(hash, search) {
  const parts = [hash, search].map((part) => part.slice(0, CHARACTERS_LIMIT + 2).replace(/^[#?]/, ""));
  return parts.find((part) => part.startsWith("first-token=")) ?? null;
}

/**
 * The last part of a path: a folder of this machine is nobody else's business. `owner/model` stays, and a
 * connection to a server, which is this visitor's own, is left out.
 */
export function modelName(name) {
  if (name.startsWith("remote:")) return "";
  const parts = name.replaceAll("\\", "/").split("/").filter(Boolean);
  const hub = /^[\w.-]+\/[\w.-]+$/.test(name) && !/^[.~]/.test(name);
  return hub ? name : parts.at(-1) ?? "";
}

/** The specs of runs with the seeds that were drawn for them, where they have none and the runs are these. */
export function withSeeds(specs, seeds) {
  if (specs.length !== seeds.length) return specs;
  const open = (spec) => !/(^|,)\s*(seed\s*=|greedy\s*(,|$)|strategy\s*=\s*greedy)/.test(spec.replace(/"(?:[^"\\]|\\.)*"/g, ""));
  return specs.map((spec, i) => (open(spec) && Number.isSafeInteger(seeds[i]) ? `${spec},seed=${seeds[i]}` : spec));
}

/**
 * The address of `asked`, a record of texts and numbers, on the page at `base`; empty ones are left out
 * and values of `lane-A` and so on become `lane`. null where it would be too long.
 */
export function address(base, tab, asked) {
  const parts = new URLSearchParams({ "first-token": VERSION, tab });
  for (const [name, value] of Object.entries(asked)) {
    if (value === null || value === undefined || value === "") continue;
    parts.append(name.startsWith("lane-") ? "lane" : name, String(value));
  }
  const text = parts.toString();
  return text.length > CHARACTERS_LIMIT ? null : `${base}#${text}`;
}
