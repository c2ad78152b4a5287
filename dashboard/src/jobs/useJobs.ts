/**
 * One page of jobs, current: the stream changes the rows that are shown at once, and what a stream
 * of single jobs cannot say (order, totals, facets) is asked for again, at most once a second.
 * Without a stream the page is asked for every few seconds.
 */
import {
  keepPreviousData,
  type QueryClient,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { address, get } from "../api/client";
import { useStream } from "../api/stream";
import type { JobItem, JobList, LiveJobs, Overview } from "../api/types";
import { apiQuery, isFiltered, type ListState } from "./listState";
import { snapshotOf } from "./snapshot";

const POLL_MS = 5_000;
const AGAIN_MS = 1_000;
const KEPT = [["jobs"], ["overview"]] as const;

export function useJobs(namespace: string, state: ListState) {
  const key = ["jobs", namespace, state] as const;
  const live = useLiveJobs(namespace);
  return useQuery({
    queryKey: key,
    queryFn: ({ signal }) => page(namespace, state, signal),
    placeholderData: keepPreviousData,
    refetchInterval: live ? false : POLL_MS,
  });
}

function page(namespace: string, state: ListState, signal: AbortSignal): Promise<JobList> {
  const query = apiQuery(state);
  if (!namespace) return get("/api/v1/jobs", { query, signal });
  return get("/api/v1/namespaces/{namespace}/jobs", { path: { namespace }, query, signal });
}

/** Keeps what is asked for with the keys "jobs" and "overview" current; whether it is live. */
export function useLiveJobs(namespace: string): boolean {
  const client = useQueryClient();
  const again = useThrottled(() => {
    // What is being read now is not begun anew: of many jobs the first page takes its time.
    if (KEPT.some((queryKey) => client.isFetching({ queryKey }) > 0)) return false;
    for (const queryKey of KEPT) void client.invalidateQueries({ queryKey });
    return true;
  }, AGAIN_MS);
  const handlers = useMemo(
    () => ({
      snapshot: (data: unknown) => {
        if (!agrees(client, (data as LiveJobs).items)) again();
      },
      resync: again,
      job: (data: unknown) => {
        replaceRow(client, data as JobItem);
        again();
      },
      deleted: again,
      error: () => undefined,
    }),
    [client, again],
  );
  return useStream(address("/api/v1/live/jobs", {}, { namespace }), handlers).phase === "live";
}

/** Whether all that is shown is what the stream begins with: then nothing need be read again. */
function agrees(client: QueryClient, jobs: readonly JobItem[]): boolean {
  const now = snapshotOf(jobs);
  const lists = client.getQueriesData<JobList>({ queryKey: ["jobs"], type: "active" });
  const glances = client.getQueriesData<Overview>({ queryKey: ["overview"], type: "active" });
  return (
    lists.every(([key, list]) => list && now.agreesWith(list, isFiltered(key[2] as ListState))) &&
    glances.every(([, overview]) => overview && now.agreesWithGlance(overview))
  );
}

function replaceRow(client: QueryClient, job: JobItem): void {
  client.setQueriesData<JobList>({ queryKey: ["jobs"] }, (list) => {
    if (!list?.items.some((one) => one.uid === job.uid)) return list;
    return { ...list, items: list.items.map((one) => (one.uid === job.uid ? job : one)) };
  });
}

/**
 * At once, and then at most once in `pause`; the last call is never lost. `call` is made again
 * later where it answers that it could not do it now.
 */
function useThrottled(call: () => boolean, pause: number): () => void {
  const latest = useRef(call);
  latest.current = call;
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  return useMemo(() => {
    let waiting = false;
    let wanted = false;
    const run = () => {
      waiting = wanted;
      if (!wanted) return;
      wanted = !latest.current();
      timer.current = setTimeout(run, pause);
    };
    return () => {
      wanted = true;
      if (!waiting) run();
    };
  }, [pause]);
}
