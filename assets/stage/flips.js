// Under one draw that is held: which token each temperature would have chosen, and where it changes.
// Arithmetic only; knows no page.

import { SIDES, at, landing } from "./chain.js";

const GRID = 0.02;
const CLOSE = 1e-4;
const SHARP = 0.01;

/** What `draw` chooses at temperature `T`: {id, certain}; id null is one of the others. */
export function chosenAt(what, draw, T) {
  const found = SIDES.map((side) => at(what, T, side));
  const ids = found.map((one) => landing(one, draw)?.id ?? null);
  return { id: ids[1], certain: ids[1] !== null && ids.every((id) => id === ids[1]) && !found.some((one) => one.loose) };
}

/**
 * The stretches of temperature from 0 to `top`, one after the other: {id, from, to, low, high, sharp}. `low` and
 * `high` bound where a stretch begins, and `sharp` tells that they are as good as one.
 */
export function stretches(what, draw, top) {
  const [least, middle, most] = SIDES.map((side) => scan(what, draw, top, side));
  let same = true;
  return middle.map((stretch, i) => {
    same &&= [least, most].every((one) => one[i]?.id === stretch.id);
    const ends = same ? [least[i].from, stretch.from, most[i].from] : [stretch.from];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const sharp = same && high - low < SHARP && !at(what, high, "most").loose;
    return { ...stretch, low, high, sharp };
  });
}

function scan(what, draw, top, side) {
  const idAt = (T) => landing(at(what, T, side), draw)?.id ?? null;
  const found = [{ id: idAt(0), from: 0, to: top }];
  let before = 0;
  for (let i = 1; i <= Math.round(top / GRID); i += 1) {
    const T = i * GRID;
    const id = idAt(T);
    if (id !== found.at(-1).id) {
      const from = bisect(idAt, before, T, found.at(-1).id);
      found.at(-1).to = from;
      found.push({ id, from, to: top });
    }
    before = T;
  }
  return found;
}

/** Between `low`, where `id` is chosen, and `high`, where it is not: the temperature at which it ends. */
function bisect(idAt, low, high, id) {
  let [a, b] = [low, high];
  while (b - a > CLOSE) {
    const half = (a + b) / 2;
    if (idAt(half) === id) a = half;
    else b = half;
  }
  return (a + b) / 2;
}
