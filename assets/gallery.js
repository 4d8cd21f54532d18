// The index of a gallery: theme and language. Works on a page that is opened from a disk.

const root = document.documentElement;
const dark = document.getElementById("of-dark");
const other = document.getElementById("of-other");

function setTheme(theme) {
  root.dataset.theme = theme;
  dark.setAttribute("aria-pressed", String(theme === "dark"));
}

/** The next language of those that the texts are there in. */
function speak() {
  const languages = [...new Set(Array.from(document.querySelectorAll(".of-said"), (one) => one.lang))];
  root.lang = languages[(languages.indexOf(root.lang) + 1) % languages.length];
  show();
}

function show() {
  for (const one of document.querySelectorAll(".of-said")) one.hidden = one.lang !== root.lang;
}

setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
dark.addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
other.addEventListener("click", speak);
show();
