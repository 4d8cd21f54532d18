// Building nodes. Text only ever goes in as text: nothing in the stage parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with a class and, where given, text. */
export function make(tag, className = "", text = null) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  return node;
}

/** An element that holds `children`. */
export function box(className, ...children) {
  const node = make("div", className);
  node.append(...children);
  return node;
}

/** A push button that does not submit anything. */
export function button(className, text, onPress) {
  const node = make("button", className, text);
  node.type = "button";
  if (onPress) node.addEventListener("click", onPress);
  return node;
}

/** An SVG element with attributes. */
export function shape(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  return setAttributes(node, attributes);
}

/** Write the attributes that changed. */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
  return node;
}

/** Write `text` where it changed. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

/** A card that is a landmark with a name. */
export function region(name, className) {
  const node = make("section", `ft-card ${className}`);
  return setAttributes(node, { role: "region", "aria-label": name });
}

/** Call `react(width)` now and whenever the width of `node` changes; returns the way to end it. */
export function watchWidth(node, react) {
  let last = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.floor(node.clientWidth);
    if (width > 0 && width !== last) react((last = width));
  });
  observer.observe(node);
  return () => observer.disconnect();
}
