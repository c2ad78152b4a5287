/** Metrics of several jobs over the time since each of them began. Pure. */
import type { Series } from "../job/metrics/usage";

export interface JobSeries {
  readonly job: string;
  readonly series: readonly Series[];
}

/** For each metric that at least one job has: one line a job, from its own beginning on. */
export function overlay(jobs: readonly JobSeries[]): { name: string; series: Series[] }[] {
  const found = new Map<string, Series[]>();
  for (const { job, series } of jobs) {
    const begin = Math.min(...series.flatMap((one) => (one.points[0] ? [one.points[0][0]] : [])));
    for (const name of new Set(series.map((one) => one.name))) {
      const points = mean(series.filter((one) => one.name === name)).map(
        ([time, value]) => [time - begin, value] as const,
      );
      if (points.length === 0) continue;
      const line: Series = { name, pod: job, rank: null, unit: "", points };
      found.set(name, [...(found.get(name) ?? []), line]);
    }
  }
  return [...found].map(([name, series]) => ({ name, series }));
}

/** Of several pods or ranks, their mean at each time at which one of them was seen. */
function mean(series: readonly Series[]): (readonly [number, number])[] {
  const sums = new Map<number, [number, number]>();
  for (const one of series) {
    for (const [time, value] of one.points) {
      const [sum, count] = sums.get(time) ?? [0, 0];
      sums.set(time, [sum + value, count + 1]);
    }
  }
  return [...sums]
    .sort(([a], [b]) => a - b)
    .map(([time, [sum, count]]) => [time, sum / count] as const);
}
