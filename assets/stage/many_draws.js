// Drawing again and again from one distribution, with draws that the page makes itself. Arithmetic only.

/** A stream of numbers in [0, 1) that `seed` repeats (mulberry32: good enough for a picture, not for secrets). */
export function uniforms(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** How often each of `shares`, whose sum is 1, is hit by `n` draws. */
export function tally(shares, n, seed) {
  const next = uniforms(seed);
  const counts = shares.map(() => 0);
  for (let i = 0; i < n; i += 1) {
    const draw = next();
    let mass = 0;
    const hit = shares.findIndex((share) => (mass += share) > draw);
    counts[hit < 0 ? shares.length - 1 : hit] += 1;
  }
  return counts;
}
