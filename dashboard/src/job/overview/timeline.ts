/** A job's life as phases with times, from its submission to its end. Pure. */
import type { Event, Job, JobStatus } from "../../api/types";
import { millis } from "../../components/time";
import { words } from "../../words";
import { finished } from "../situation";

export interface Phase {
  readonly key: string;
  readonly name: string;
  /** null where nobody recorded the time */
  readonly from: number | null;
  /** null while it lasts, and where the time is not known */
  readonly to: number | null;
  readonly state: "done" | "now" | "failed" | "waiting";
}

const QUEUE = "kueue.x-k8s.io/queue-name";

export function phases(job: Job, status: JobStatus | null, events: readonly Event[]): Phase[] {
  const created = millis(job.created);
  const started = millis(job.started);
  const found: Phase[] = [];
  if (created !== null)
    found.push({ ...point("submitted", words.job.timeline.submitted), from: created, to: created });
  found.push(beforeStart(job, created, started));
  found.push(...initializers(job));
  if (started !== null) found.push(...attempts(job, status, events, started));
  return found;
}

function point(key: string, name: string): Phase {
  return { key, name, from: null, to: null, state: "done" };
}

function beforeStart(job: Job, created: number | null, started: number | null): Phase {
  const text = words.job.timeline;
  const queue = queueOf(job);
  const held = started === null && job.state === "Suspended" && !queue;
  const name = queue ? text.queue(queue) : held ? text.suspended : text.waiting;
  const ended = finished(job) && started === null ? millis(job.completed) : started;
  return { key: "queue", name, from: created, to: ended, state: ended === null ? "now" : "done" };
}

/** Empty where it is in none. */
export function queueOf(job: Job): string {
  const metadata = job.manifest.metadata as { labels?: Record<string, string> } | undefined;
  return metadata?.labels?.[QUEUE] ?? "";
}

interface PartStatus {
  readonly name: string;
  readonly ready?: number;
  readonly succeeded?: number;
  readonly failed?: number;
  readonly active?: number;
}

/** Those of TrainJobs; their API says how far they are, and not when. */
function initializers(job: Job): Phase[] {
  const status = job.manifest.status as { jobsStatus?: PartStatus[] } | undefined;
  return (status?.jobsStatus ?? [])
    .filter((one) => one.name.endsWith("initializer"))
    .map((one) => ({
      ...point(one.name, words.job.timeline.initializer(one.name)),
      state: one.failed ? "failed" : one.succeeded ? "done" : one.active ? "now" : "waiting",
    }));
}

/** Each attempt that has ended, and the one that runs or ended well. */
function attempts(
  job: Job,
  status: JobStatus | null,
  events: readonly Event[],
  started: number,
): Phase[] {
  const text = words.job.timeline;
  const past = status?.attempts ?? [];
  const many = past.length > 1 || (past.length === 1 && job.state !== "Failed");
  const runs = runningTimes(status, events);
  const found: Phase[] = [];
  let before = started;
  const add = (attempt: number, from: number, to: number | null, state: Phase["state"]) => {
    const name = (phase: string) => (many ? text.attempt(attempt, phase) : phase);
    const ran = runs.find((time) => time >= from - 1_000 && (to === null || time <= to));
    const starting = { key: `starting-${attempt}`, name: name(text.starting), from };
    if (ran === undefined) {
      found.push({ ...starting, to, state });
      return;
    }
    found.push({ ...starting, to: Math.max(ran, from), state: "done" });
    found.push({
      key: `running-${attempt}`,
      name: name(text.running),
      from: Math.max(ran, from),
      to,
      state,
    });
  };
  for (const one of past) {
    const ended = millis(one.ended);
    add(one.attempt, Math.max(millis(one.began) ?? before, started), ended, "failed");
    before = ended ?? before;
  }
  if (job.state === "Failed" && past.length > 0) return found;
  const end = millis(job.completed);
  if (job.state === "Suspended") {
    found.push({
      key: "suspended",
      name: text.suspended,
      from: suspendedAt(status) ?? before,
      to: null,
      state: "now",
    });
    return found;
  }
  const state = job.state === "Failed" ? "failed" : end === null ? "now" : "done";
  add((past.at(-1)?.attempt ?? 0) + 1, before, end, state);
  return found;
}

function suspendedAt(status: JobStatus | null): number | null {
  const found = status?.conditions.find((one) => one.type === "Suspended" && one.status === "True");
  return millis(found?.lastTransitionTime);
}

/** When its ranks began to run, once for each attempt, oldest first. */
function runningTimes(status: JobStatus | null, events: readonly Event[]): number[] {
  const times = events
    .filter((one) => /^(MPIJob|TrainJob|Job)?Running$/.test(one.reason))
    .map((one) => millis(one.time));
  const condition = status?.conditions.find(
    (one) => one.type === "Running" && one.status === "True",
  );
  times.push(millis(condition?.lastTransitionTime));
  return times.filter((time) => time !== null).sort((a, b) => a - b);
}

/** Where a phase lies between the first and the last moment, in percent. */
export function extent(phase: Phase, all: readonly Phase[], now: number): [number, number] | null {
  if (phase.from === null) return null;
  const begins = all.flatMap((one) => (one.from === null ? [] : [one.from]));
  const ends = all.flatMap((one) =>
    one.from === null ? [] : [one.to ?? (one.state === "now" ? now : one.from)],
  );
  const first = Math.min(...begins);
  const whole = Math.max(...ends) - first || 1;
  const end = phase.to ?? (phase.state === "now" ? now : phase.from);
  const left = ((phase.from - first) / whole) * 100;
  return [Math.min(left, 99.5), Math.max(0, ((end - phase.from) / whole) * 100)];
}
