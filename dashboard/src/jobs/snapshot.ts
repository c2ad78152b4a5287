/**
 * What a stream of jobs begins with, against what a page has read already. Pure. A page that agrees
 * need not be read again, which for thousands of jobs is most of what opening it costs.
 */
import type { JobItem, JobList, Overview } from "../api/types";

export interface Snapshot {
  /** A filtered list never does: what the filters leave out is not known here. */
  agreesWith(list: JobList, filtered: boolean): boolean;
  agreesWithGlance(overview: Overview): boolean;
}

export function snapshotOf(jobs: readonly JobItem[]): Snapshot {
  const versions = new Map(jobs.map((one) => [one.uid, one.resourceVersion]));
  const same = (items: readonly JobItem[]) =>
    items.every((one) => versions.get(one.uid) === one.resourceVersion);
  return {
    agreesWith: (list, filtered) => !filtered && list.total === jobs.length && same(list.items),
    agreesWithGlance: ({ total, states, running, waiting, failedLately }) =>
      total === jobs.length && counts(jobs, states) && [running, waiting, failedLately].every(same),
  };
}

function counts(jobs: readonly JobItem[], states: Readonly<Record<string, number>>): boolean {
  const found: Record<string, number> = {};
  for (const { state } of jobs) found[state] = (found[state] ?? 0) + 1;
  return Object.entries(found).every(([state, count]) => states[state] === count);
}
