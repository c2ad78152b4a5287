/** What a job is doing, in one sentence, and what its user can do with it. Pure. */
import type { Job, JobStatus } from "../api/types";
import { duration, millis } from "../components/time";
import { words } from "../words";

export function finished(job: Pick<Job, "state">): boolean {
  return job.state === "Succeeded" || job.state === "Failed";
}

/** Since when it is in its state, where that is known. */
export function since(job: Job, status: JobStatus | null): string | null {
  const current = status?.conditions.find((one) => one.type === job.state && one.status === "True");
  return current?.lastTransitionTime ?? (finished(job) ? job.completed : job.created);
}

/** How long it ran, or has been running; null before it started. */
export function ran(job: Job, now: number): number | null {
  const started = millis(job.started);
  if (started === null) return null;
  return Math.max(0, (millis(job.completed) ?? now) - started);
}

export function sentence(job: Job, status: JobStatus | null, now: number): string {
  const text = words.job.now;
  if (job.deleted) return text.deleting;
  const long = ran(job, now);
  const took = long === null ? "" : duration(long);
  const waits = status?.waitsFor ?? "";
  switch (job.state) {
    case "Suspended":
      return job.suspend ? text.suspended : text.resuming;
    case "Created":
      return waits ? text.waits(waits) : text.starting;
    case "Restarting":
      return text.restarting(
        (status?.attempts.length ?? 0) + 1,
        status?.attempts.at(-1)?.reason ?? "",
      );
    case "Succeeded":
      return text.succeeded(took);
    case "Failed":
      return text.failed(took, blamed(status));
    case "Running":
      return running(job, status, took);
  }
}

function running(job: Job, status: JobStatus | null, took: string): string {
  const text = words.job.now;
  if (job.suspend) return text.suspending;
  if (status?.waitsFor) return text.waits(status.waitsFor);
  const ranks = job.workers * job.slots;
  const progress = status?.progress;
  if (!progress || progress.step === null)
    return text.running(job.workers, ranks, took, status !== null);
  const left = progress.etaSeconds ? duration(progress.etaSeconds * 1_000) : "";
  return text.progress(progress.unit, short(progress.step), short(progress.total), left);
}

function short(value: number | null): string {
  return value === null ? "" : String(Math.round(value * 100) / 100);
}

function blamed(status: JobStatus | null): string {
  const last = status?.attempts.at(-1);
  if (!last) return "";
  const rank = last.rank === null ? "" : words.job.rank(last.rank);
  return [rank, last.host].filter(Boolean).join(words.job.on);
}

/** Says that it seems to be stuck, in the words of its controller; empty where nothing says so. */
export function suspicion(status: JobStatus | null): string {
  const marked = status?.conditions.find(
    (one) => one.type === "Running" && one.status === "True" && one.message.includes(STUCK),
  );
  return marked ? marked.message.slice(marked.message.indexOf(STUCK)) : "";
}

const STUCK = "seems to be stuck: ";

export type ActionName = "suspend" | "resume" | "restart" | "clone" | "delete";

/** Why an action makes no sense in this state; empty where it does. */
export function pointless(action: ActionName, job: Job): string {
  const text = words.job.actions.pointless;
  if (job.deleted) return text.deleting;
  if (action === "suspend") {
    if (finished(job)) return text.finished;
    return job.suspend ? text.suspended : "";
  }
  if (action === "resume") {
    if (finished(job)) return text.finished;
    return job.suspend ? "" : text.notSuspended;
  }
  return "";
}
