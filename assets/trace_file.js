// A packet of a whole record as the text of a trace file, as playground/core/trace.py writes it.

/** JSON Lines: a header, then one event a line. Ticks of a race carry its id; the work is counted anew. */
export function traceText({ run, events }) {
  const requests = events.filter((event) => event.event === "started").map(({ model, request }) => ({
    model: model.name, revision: model.revision, device: model.device, dtype: model.dtype, ...request,
  }));
  const header = { format: "first-token-trace", version: 1, requests };
  return [header, ...events.map((event) => plain(event, run))].map((one) => `${JSON.stringify(one)}\n`).join("");
}

function plain({ work, ...event }, run) {
  return event.event === "ticked" || event.event === "raced" ? { ...event, run } : event;
}

/** Let the browser save `text` as a file of that name. */
export function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
