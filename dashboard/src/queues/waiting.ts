/** Jobs that wait in queues, each queue's in the order of their creation. Pure. */
import type { JobItem } from "../api/types";

export interface Group {
  readonly queue: string;
  readonly jobs: readonly JobItem[];
}

/** A job without a queue waits for nobody. */
export function waiting(jobs: readonly JobItem[]): Group[] {
  const names = [...new Set(jobs.map((job) => job.queue).filter(Boolean))].sort();
  return names.map((queue) => ({
    queue,
    jobs: jobs
      .filter((job) => job.queue === queue && ["Created", "Suspended"].includes(job.state))
      .sort((one, other) => one.created.localeCompare(other.created)),
  }));
}
