/** Addresses of our pages. */
import { type KindPath, kindPath } from "../api/types";

export interface JobRef {
  kind: string;
  namespace: string;
  name: string;
}

export const paths = {
  home: "/",
  jobs: "/jobs",
  create: "/create",
  runtimes: "/runtimes",
  queues: "/queues",
  compare: "/compare",
} as const;

/** The tab is part of the address, so that it can be sent to somebody. */
export function jobPath(job: JobRef, tab = ""): string {
  const base = `/jobs/${job.namespace}/${kindPath(job.kind)}/${encodeURIComponent(job.name)}`;
  return tab ? `${base}/${tab}` : base;
}

/** `create` filled in from a job that is there. */
export function clonePath(job: JobRef): string {
  return `${paths.create}?from=${encodeURIComponent(jobKey(job))}`;
}

export function comparePath(jobs: readonly JobRef[]): string {
  return `${paths.compare}?jobs=${jobs.map((job) => encodeURIComponent(jobKey(job))).join(",")}`;
}

/** namespace/kinds/name: one text for a job, in addresses and as a key. */
export function jobKey(job: JobRef): string {
  return `${job.namespace}/${kindPath(job.kind)}/${job.name}`;
}

export function jobOfKey(key: string): (JobRef & { kindPath: KindPath }) | null {
  const [namespace, kind, name, ...rest] = key.split("/");
  if (!namespace || !name || rest.length || (kind !== "mpijobs" && kind !== "trainjobs"))
    return null;
  return { namespace, name, kindPath: kind, kind: kind === "mpijobs" ? "MPIJob" : "TrainJob" };
}
