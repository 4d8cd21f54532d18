// What the user should know of a run, in the page's language: its notes are records with a key.

import { setText } from "./dom.js";

/** Show the run's notes, and `more`, in `node`; hide it where there is nothing to say. */
export function showNotes(node, words, run, more) {
  const notes = [...(run.started?.notes ?? []), ...(run.prefilled?.notes ?? [])].map(({ key, text, detail }) =>
    words.has(`notes.${key}`) ? words.say(`notes.${key}`, { detail }) : String(text));
  const said = [...notes, more].filter(Boolean).join(" ");
  setText(node, said);
  node.hidden = !said;
}
