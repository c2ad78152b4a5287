import {
  type Query,
  QueryCache,
  type QueryCacheNotifyEvent,
  QueryClient,
} from "@tanstack/react-query";
import { ProblemError, ServerGone } from "./client";
import { connection } from "./connection";

/** A refusal is not asked again: the answer would be the same. What took its whole time neither. */
function again(failures: number, error: Error): boolean {
  if (error instanceof ProblemError)
    return error.status >= 500 && error.status !== 504 && failures < 2;
  return failures < 2;
}

/** The server answers, and says that the cluster does not. */
export function clusterGone(error: unknown): boolean {
  if (!(error instanceof ProblemError) || ![502, 503, 504].includes(error.status)) return false;
  return error.problem.type.startsWith("urn:problem-type:mpi-trainer:");
}

/** Nobody answers, or a proxy in its place. */
function serverGone(error: unknown): boolean {
  if (error instanceof ServerGone) return true;
  return (
    error instanceof ProblemError && [502, 503, 504].includes(error.status) && !clusterGone(error)
  );
}

/** Each failure is told at once, and not after the last attempt: the page is old since the first. */
export function heard(event: QueryCacheNotifyEvent): void {
  const { query } = event;
  const watched = query.getObserversCount() > 0;
  if (!watched) connection.report(query.queryHash, "ended");
  if (event.type !== "updated") return;
  const { action } = event;
  if (action.type === "success" && !action.manual) answered(query);
  if (action.type === "failed" || action.type === "error") failed(query, action.error, watched);
}

function failed(query: Query<unknown, Error>, error: unknown, watched: boolean): void {
  if (serverGone(error)) {
    if (watched) connection.report(query.queryHash, "reconnecting", "server");
  } else if (clusterGone(error)) {
    if (watched) connection.report(query.queryHash, "reconnecting", "cluster");
  } else connection.report(query.queryHash, "live");
  if (error instanceof ProblemError && error.status === 401) connection.loggedOut();
}

function answered(query: Query<unknown, Error>): void {
  connection.report(query.queryHash, "live");
  connection.loggedIn();
}

export function queryClient(): QueryClient {
  const queryCache = new QueryCache();
  queryCache.subscribe(heard);
  return new QueryClient({
    queryCache,
    defaultOptions: {
      queries: {
        retry: again,
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        networkMode: "always",
      },
      mutations: { retry: false, networkMode: "always" },
    },
  });
}
