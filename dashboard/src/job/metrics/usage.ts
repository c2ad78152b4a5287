/**
 * What a job's pods use. The server says what they use now and, where it has a Prometheus, what they
 * used; of the rest, the page remembers what it saw while it was open.
 */
import { useQuery } from "@tanstack/react-query";
import { ProblemError, request } from "../../api/client";
import type { Metrics } from "../../api/types";
import { type JobPlace, placeNames } from "../place";

const EVERY_MS = 5_000;
/** One hour at one look in five seconds. */
const MOST = 720;

export type Point = readonly [number, number];

export interface Series {
  readonly name: string;
  readonly pod: string;
  readonly rank: number | null;
  readonly unit: string;
  readonly points: readonly Point[];
}

export interface History {
  readonly series: readonly Series[];
  readonly source: string;
  readonly notes: readonly string[];
}

export class UsageHistory {
  private readonly found = new Map<string, Point[]>();

  add(seconds: number, metrics: Metrics): void {
    for (const pod of metrics.pods) {
      this.put(seconds, pod.pod, "cpus", pod.cpus);
      this.put(seconds, pod.pod, "memoryBytes", pod.memoryBytes);
      for (const gpu of pod.gpus) {
        const name = pod.gpus.length > 1 ? `${pod.pod} GPU ${gpu.gpu}` : pod.pod;
        this.put(seconds, name, "gpuPercent", gpu.percent);
        this.put(seconds, name, "gpuMemoryBytes", gpu.memoryBytes);
      }
    }
    for (const [name, value] of Object.entries(metrics.metrics)) this.put(seconds, "", name, value);
  }

  private put(seconds: number, pod: string, name: string, value: number | null): void {
    if (value === null) return;
    const key = `${name} ${pod}`;
    const points = this.found.get(key) ?? [];
    if (points.at(-1)?.[0] === seconds) return;
    points.push([seconds, value]);
    if (points.length > MOST) points.shift();
    this.found.set(key, points);
  }

  points(pod: string, name: string): readonly Point[] {
    return this.found.get(`${name} ${pod}`) ?? [];
  }

  series(): Series[] {
    return [...this.found].map(([key, points]) => {
      const end = key.indexOf(" ");
      return { name: key.slice(0, end), pod: key.slice(end + 1), rank: null, unit: "", points };
    });
  }
}

const histories = new Map<string, UsageHistory>();
const MOST_JOBS = 8;

/** One for each job that was looked at, so that it is still there when a tab is opened again. */
function historyOf(uid: string): UsageHistory {
  const known = histories.get(uid);
  if (known) return known;
  const oldest = histories.keys().next().value;
  if (histories.size >= MOST_JOBS && oldest !== undefined) histories.delete(oldest);
  const made = new UsageHistory();
  histories.set(uid, made);
  return made;
}

export interface Usage {
  readonly now: Metrics | null;
  readonly history: UsageHistory;
  readonly error: unknown;
  readonly retry: () => void;
}

export function useUsage(place: JobPlace, running: boolean): Usage {
  const history = historyOf(place.uid);
  const path = `/api/v1/namespaces/{namespace}/${place.kindPath}/{name}/metrics`;
  const found = useQuery({
    queryKey: ["usage", place.namespace, place.kindPath, place.name, place.uid, running],
    queryFn: async ({ signal }) => {
      const now = (await request("GET", path, { path: placeNames(place), signal })) as Metrics;
      if (running) history.add(Date.now() / 1_000, now);
      return now;
    },
    refetchInterval: running ? EVERY_MS : false,
  });
  return {
    now: found.data ?? null,
    history,
    error: found.data ? null : found.error,
    retry: () => void found.refetch(),
  };
}

/** Null where the server keeps no history. */
export function useHistory(place: JobPlace, minutes: number, running: boolean) {
  const path = `/api/v1/namespaces/{namespace}/${place.kindPath}/{name}/metrics/history`;
  return useQuery({
    queryKey: ["history", place.namespace, place.kindPath, place.name, place.uid, minutes, running],
    queryFn: async ({ signal }) => {
      const options = { path: placeNames(place), query: { minutes }, signal };
      try {
        return (await request("GET", path, options)) as History;
      } catch (error) {
        if (error instanceof ProblemError && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: running ? 15_000 : false,
  });
}
