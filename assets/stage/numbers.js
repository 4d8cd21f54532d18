// How numbers are written, the same in every language and as playground/core/units.py writes them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** One format for each number of decimals: making one takes longer than everything else in a redraw. */
const formats = Array.from({ length: 13 }, (_, decimals) => new Intl.NumberFormat("en-US", {
  minimumFractionDigits: decimals, maximumFractionDigits: decimals,
}));
const fixed = (value, decimals) => formats[decimals].format(value);

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

/** A whole number with separated thousands. */
export const count = (n) => (known(n) ? fixed(n, 0) : "–");

/** A probability in per cent with `figures` significant figures, or “< 0.01 %”; exactly 0 and 1 stay exact. */
export function percent(p, figures = 3) {
  if (!known(p)) return "–";
  if (p === 0) return "0";
  if (p === 1) return "100 %";
  const value = p * 100;
  if (value < 0.01) return "< 0.01 %";
  if (Number(value.toPrecision(figures)) >= 100) return figures > 2 ? "> 99.9 %" : "> 99 %";
  return `${significant(value, figures)} %`;
}

/** `value` with `figures` significant figures, never in exponent form. */
export function significant(value, figures = 3) {
  const rounded = Number(value.toPrecision(figures));
  const whole = rounded === 0 ? 1 : Math.floor(Math.log10(Math.abs(rounded))) + 1;
  return fixed(rounded, Math.min(12, Math.max(0, figures - whole)));
}

const shortest = (value) => {
  const text = significant(value);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
};

/** Seconds as a reader says them: 4.21 ms, 36 ms, 1.24 s. */
export function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds >= 0.9995) return `${shortest(seconds)} s`;
  const ms = seconds * 1000;
  return `${ms < 9.995 ? shortest(ms) : fixed(ms, 0)} ms`;
}

/** Bytes as B, KiB, MiB or GiB (2^10 each), three significant figures. */
export function bytes(n) {
  if (!known(n)) return "–";
  let value = n;
  let unit = 0;
  while (Math.abs(value) >= (unit ? 999.5 : 1024) && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${shortest(value)} ${UNITS[unit]}`;
}

/** A rate, or a number of bits: 27.4, 392, 1,204. */
export const rate = (value) => (known(value) ? fixed(value, value < 100 ? 1 : 0) : "–");

/** A draw: three decimals, never rounded up to 1. */
export const draw = (u) => (known(u) ? Math.min(0.999, u).toFixed(3) : "–");

/** A number for an axis, short. */
export const tick = (value) => shortest(value);

/** The next round number at or above `value`, for the end of an axis. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 1.2, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.9999);
}
