// Escape closes what is open in the stage before anything else on the page hears of it.

/** `close()` returns whether it closed something; returns the way to stop listening. */
export function onEscape(close) {
  const listen = (event) => {
    if (event.key !== "Escape" || !close()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  window.addEventListener("keydown", listen, true);
  return () => window.removeEventListener("keydown", listen, true);
}
