import type { Event, Job, JobStatus } from "../api/types";
import type { JobPlace } from "./place";

export const TABS = ["overview", "configuration", "workers", "logs", "metrics", "events"] as const;
export type Tab = (typeof TABS)[number];

/** What every tab is given. */
export interface JobTabProps {
  readonly place: JobPlace;
  readonly job: Job;
  /** null until it is known */
  readonly status: JobStatus | null;
  readonly events: readonly Event[];
  /** whether the server tells of changes by itself */
  readonly live: boolean;
}

export function tabOf(text: string | undefined): Tab {
  return TABS.find((one) => one === text) ?? "overview";
}
