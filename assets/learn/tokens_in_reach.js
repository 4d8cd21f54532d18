// Tokens that can be pressed or walked with the arrow keys; one of them is in the tab order.

const JUMPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Watch the chips in `node`; `choose(i)` is called for the one that is pressed, focused or walked to. */
export function focusable(node, choose) {
  const chips = () => [...node.querySelectorAll(".ft-token[data-i]")];
  const state = { at: -1 };
  const mark = (i, act = true) => {
    const all = chips();
    if (!all.length) return;
    state.at = Math.min(all.length - 1, Math.max(0, i));
    all.forEach((chip, n) => {
      chip.setAttribute("tabindex", n === state.at ? "0" : "-1");
      if (act && n === state.at) chip.setAttribute("aria-current", "true");
      else chip.removeAttribute("aria-current");
    });
    if (act) choose(state.at);
  };
  const indexOf = (event) => {
    const chip = event.target.closest?.(".ft-token[data-i]");
    return chip ? Number(chip.dataset.i) : null;
  };
  node.addEventListener("click", (event) => { const i = indexOf(event); if (i !== null) mark(i); });
  node.addEventListener("keydown", (event) => {
    const i = indexOf(event);
    if (i === null) return;
    const to = event.key in JUMPS ? i + JUMPS[event.key] : event.key === "Enter" || event.key === " " ? i : null;
    if (to === null) return;
    event.preventDefault();
    mark(to);
    chips()[state.at]?.focus();
  });
  return { mark, reset: () => mark(0, false) };
}
