/** Which rank or pod lags behind the others. Pure. */
import type { Series } from "./usage";

export interface Straggler {
  readonly who: string;
  /** how much less than the others', in percent */
  readonly percent: number;
}

const FEWEST = 3;
const LAG = 0.25;
const NEWEST = 8;
/** Of which more is faster; a time for a step, or a learning rate, says nothing like it. */
const SPEEDS = /throughput|per_?sec|(?:samples|tokens|images|steps|it)[_/]s$|^step$/i;

/**
 * The slowest of at least three ranks where it is a quarter below their median, by the newest values
 * of what counts their speed. Null where all are alike: waiting for one makes all equally slow.
 */
export function straggler(series: readonly Series[]): Straggler | null {
  const byName = new Map<string, { who: string; value: number }[]>();
  for (const one of series) {
    if (one.rank === null || !SPEEDS.test(one.name) || one.points.length === 0) continue;
    const newest = one.points.slice(-NEWEST);
    const value = newest.reduce((sum, [, each]) => sum + each, 0) / newest.length;
    const list = byName.get(one.name) ?? [];
    list.push({ who: String(one.rank), value });
    byName.set(one.name, list);
  }
  let worst: Straggler | null = null;
  for (const list of byName.values()) {
    if (list.length < FEWEST) continue;
    const sorted = [...list].sort((a, b) => a.value - b.value);
    const slowest = sorted[0];
    const median = sorted[Math.floor(sorted.length / 2)]?.value ?? 0;
    if (!slowest || median <= 0) continue;
    const lag = 1 - slowest.value / median;
    if (lag >= LAG && lag * 100 > (worst?.percent ?? 0)) {
      worst = { who: slowest.who, percent: Math.round(lag * 100) };
    }
  }
  return worst;
}
