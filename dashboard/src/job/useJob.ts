/**
 * One job, kept current: by a live stream where the server has one, otherwise by asking again and
 * again. What is shown stays while the server is away; the banner of the shell says that it is old.
 */
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { address, ProblemError, request } from "../api/client";
import { useStream } from "../api/stream";
import type { Event, EventList, Job, JobStatus } from "../api/types";
import { eventKey, withEvent } from "./eventList";
import { type JobPlace, placeNames } from "./place";
import { finished } from "./situation";
import { useStreams } from "./streams";

const POLL_MS = 2_000;
const CALM_POLL_MS = 15_000;

export interface JobNow {
  readonly job: Job | null;
  readonly status: JobStatus | null;
  readonly events: readonly Event[];
  readonly deleted: boolean;
  readonly error: unknown;
  /** why the job is known and its status is not; null where it is still to come */
  readonly statusError: unknown;
  readonly live: boolean;
  readonly retry: () => void;
}

export function jobKeys(place: Pick<JobPlace, "namespace" | "kindPath" | "name">) {
  const base = ["job", place.namespace, place.kindPath, place.name] as const;
  return {
    all: base,
    job: [...base, "job"],
    status: [...base, "status"],
    events: [...base, "events"],
  } as const;
}

export function useJob(place: JobPlace): JobNow {
  const client = useQueryClient();
  const keys = jobKeys(place);
  const path = `/api/v1/namespaces/{namespace}/${place.kindPath}/{name}`;
  const names = placeNames(place);
  const url = address(`${path}/live`, names);
  const supported = useStreams("job", url);
  const [gone, setGone] = useState("");
  const deleted = gone === url;

  const known = client.getQueryData<Job>(keys.job) !== undefined;
  const stream = useStream(supported && known && !deleted ? url : null, {
    job: (data) => client.setQueryData(keys.job, data as Job),
    status: (data) => client.setQueryData(keys.status, data as JobStatus),
    event: (data) => addEvent(client, keys.events, data as Event),
    deleted: () => setGone(url),
  });
  const live = stream.phase === "live";

  const ask = (rest: string, signal: AbortSignal) =>
    request("GET", `${path}${rest}`, { path: names, signal });
  const job = useQuery({
    queryKey: keys.job,
    queryFn: ({ signal }) => ask("", signal) as Promise<Job>,
    enabled: !deleted,
    refetchInterval: (query) => {
      if (isFinal(query.state.error)) return false;
      if (live) return CALM_POLL_MS * 4;
      return query.state.data && finished(query.state.data) ? CALM_POLL_MS : POLL_MS;
    },
  });
  const current = job.data ?? null;
  const often = deleted || live ? false : current && finished(current) ? CALM_POLL_MS : POLL_MS;
  const status = useQuery({
    queryKey: keys.status,
    queryFn: ({ signal }) => ask("/status", signal) as Promise<JobStatus>,
    enabled: !deleted,
    refetchInterval: often,
  });
  const events = useQuery({
    queryKey: keys.events,
    queryFn: ({ signal }) => ask("/events", signal) as Promise<EventList>,
    enabled: !deleted,
    refetchInterval: often,
  });

  // The end is told by the job's own state: status and events are asked for once more.
  const state = current?.state;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each change of state
  useEffect(() => {
    if (state && !live) {
      void client.invalidateQueries({ queryKey: keys.status });
      void client.invalidateQueries({ queryKey: keys.events });
    }
  }, [state]);

  const missing = job.error instanceof ProblemError && job.error.status === 404;
  return {
    job: current,
    status: status.data ?? null,
    events: events.data?.items ?? [],
    deleted: deleted || (missing && current !== null),
    error: current === null ? job.error : null,
    statusError: status.data === undefined ? status.error : null,
    live: supported === true,
    retry: () => void client.invalidateQueries({ queryKey: keys.all }),
  };
}

/** An answer that stays as it is; a login may come back, by another window. */
function isFinal(error: unknown): boolean {
  return error instanceof ProblemError && error.status < 500 && error.status !== 401;
}

function addEvent(client: QueryClient, key: readonly unknown[], event: Event): void {
  client.setQueryData<EventList>(key, (before) => {
    const items = before?.items ?? [];
    const known = items.some((one) => eventKey(one) === eventKey(event));
    return known ? before : { items: withEvent(items, event) };
  });
}
