// Where an answer goes round in a circle: a stretch in which the same 1 to PERIOD_LIMIT tokens stand at least TIMES
// times in a row and that is at least LENGTH tokens long, so that “ha ha ha” is none. Knows no page, and no text:
// tokens are ids.

const TIMES = 3;
const LENGTH = 12;
const PERIOD_LIMIT = 64;

/** The loops of `ids` in order, none inside another: [{first, period, length}]. */
export function loopsOf(ids) {
  const found = [];
  for (let period = 1; period <= Math.min(PERIOD_LIMIT, Math.floor(ids.length / TIMES)); period += 1) stretches(ids, period, found);
  found.sort((a, b) => a.first - b.first || a.period - b.period);
  const kept = [];
  let end = 0;
  for (const loop of found) {
    if (loop.first < end) continue;
    kept.push(loop);
    end = loop.first + loop.length;
  }
  return kept;
}

function stretches(ids, period, found) {
  let run = 0;
  for (let i = period; i <= ids.length; i += 1) {
    if (i < ids.length && ids[i] === ids[i - period]) {
      run += 1;
      continue;
    }
    if (run + period >= Math.max(TIMES * period, LENGTH)) found.push({ first: i - run - period, period, length: run + period });
    run = 0;
  }
}

/** Mean entropy in bits before the loop, null where nothing stands there, and from its second time on. */
export function collapse(steps, { first, period, length }) {
  const mean = (some) => (some.length ? some.reduce((sum, step) => sum + step.raw_entropy_bits, 0) / some.length : null);
  return { before: mean(steps.slice(0, first)), within: mean(steps.slice(first + period, first + length)) };
}
