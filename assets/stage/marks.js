// Making the invisible visible: spaces, line ends, tabs, control characters, bytes.

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
const IN_TEXT = new RegExp(`\\r?\\n|\\t| {2,}|^ +$|${UNSEEN.source}`, "gu");
const IN_LISTS = new RegExp(` |${UNSEEN.source}`, "gu");

/** `e29c` as `e2 9c`. */
export const spacedBytes = (hex) => hex.replace(/(..)(?=.)/g, "$1 ");

/** One unseen character as a reader can name it. */
export function markOf(text) {
  if (/^\r?\n$/.test(text)) return text.length > 1 ? "\\r↵" : "↵";
  if (text === "\t") return "⇥";
  if (/^ +$/.test(text)) return text.length === 1 ? "␣" : "·".repeat(text.length);
  const code = text.codePointAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** A token for a list: outer spaces marked, line ends and control characters named, halves as bytes. */
export function visible(token) {
  if (isPiece(token)) return `‹${spacedBytes(token.bytes)}›`;
  const text = token.text;
  if (text === "") return "∅";
  return text.replace(IN_LISTS, (c, at) => {
    if (c !== " ") return markOf(c);
    const outer = !text.slice(0, at).trim() || !text.slice(at).trim();
    return outer ? "␣" : " ";
  });
}

/** A token for a name that is read aloud: its words, or the marks where there are none. */
export const spoken = (token) =>
  isPiece(token) || !token.text.trim() ? visible(token) : token.text.trim();

/** A name from outside in a sentence of ours: what cannot be seen, or turns the sentence about, is named. */
export const plain = (text) => String(text).replace(new RegExp(UNSEEN.source, "gu"), markOf);

/** Whether the token is part of a character only. */
export function isPiece(token) {
  return token.bytes !== "" && token.text.includes("\ufffd") && !completes(token.bytes);
}

/** Whether `hex` is UTF-8 of whole characters. */
export function completes(hex) {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(toBytes(hex));
    return true;
  } catch {
    return false;
  }
}

/** `hex` as text, broken characters as U+FFFD. */
export const decoded = (hex) => new TextDecoder().decode(toBytes(hex));

/** The bytes of `text` in hexadecimal, for a source that sent none. */
export const encoded = (text) =>
  [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function toBytes(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/**
 * Put `text` into `node` as it is, with a mark beside what cannot be seen. The marks are drawn by the
 * style sheet, so that selecting and copying gives the text itself.
 */
export function appendMarked(node, text) {
  let at = 0;
  for (const found of text.matchAll(IN_TEXT)) {
    if (found.index > at) node.append(text.slice(at, found.index));
    node.append(mark(found[0]));
    at = found.index + found[0].length;
  }
  if (at < text.length) node.append(text.slice(at));
}

function mark(text) {
  const node = document.createElement("span");
  node.className = /^ +$/.test(text) ? "ft-mark ft-mark-over" : "ft-mark";
  if (UNSEEN.test(text) && !/[\t\n]/.test(text)) node.classList.add("ft-mark-unseen");
  node.dataset.mark = /^ +$/.test(text) ? "·".repeat(text.length) : markOf(text);
  const held = document.createElement("span");
  held.textContent = text;
  node.append(held);
  return node;
}
