/** A job's lines, live by a stream; asked for again and again where the server has no streams. */
import { useEffect, useRef, useState } from "react";
import { address, ProblemError, request } from "../api/client";
import { useStream } from "../api/stream";
import type { LogLines } from "../api/types";
import { type JobPlace, placeNames } from "../job/place";
import { useStreams } from "../job/streams";
import type { SentLine } from "./line";
import { LogStore, type Sent } from "./store";

const TAIL = 10_000;
const POLL_MS = 1_500;

export interface LogSource {
  readonly attempt: number | null;
  /** also what workers' own pods wrote, such as their sshd */
  readonly allPods: boolean;
}

export interface Logs {
  readonly store: LogStore;
  readonly error: unknown;
  readonly loading: boolean;
  /** whether lines come by themselves */
  readonly live: boolean;
  readonly loadOlder: () => Promise<void>;
}

export function useLogs(job: JobPlace, source: LogSource, finished: boolean): Logs {
  const [store] = useState(() => new LogStore());
  const [error, setError] = useState<unknown>(null);
  const [loading, setLoading] = useState(true);
  const path = `/api/v1/namespaces/{namespace}/${job.kindPath}/{name}/logs`;
  const { attempt, allPods } = source;
  const query = { tail: TAIL, attempt: attempt ?? undefined, allPods: allPods || undefined };
  const names = placeNames(job);
  const url = address(`${path}/live`, names, query);
  const identity = `${url} ${job.uid}`;
  const live = useStreams("logs", url);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another source means other lines
  useEffect(() => {
    store.clear();
    setLoading(true);
    setError(null);
  }, [identity, store]);

  const stream = useStream(live ? url : null, {
    lines: (data) => {
      setLoading(false);
      store.add(data as Sent);
    },
    end: () => {
      setLoading(false);
      store.end();
    },
    cut: () => store.interrupted(),
  });
  useEffect(() => {
    if (stream.phase === "reconnecting") store.interrupted();
    if (stream.phase === "live") {
      const timer = setTimeout(() => setLoading(false), 1_000);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [stream.phase, store]);

  const asked = useRef(query);
  asked.current = query;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `identity` stands for job and source
  useEffect(() => {
    if (live !== false) return undefined;
    const stop = new AbortController();
    void poll(
      store,
      finished,
      stop.signal,
      async () => {
        const since = store.newest ?? undefined;
        const options = { path: names, query: { ...asked.current, since }, signal: stop.signal };
        return (await request("GET", path, options)) as LogLines;
      },
      (found) => {
        setLoading(false);
        setError(found);
      },
    );
    return () => stop.abort();
  }, [identity, live, finished, store]);

  const loadOlder = async () => {
    const until = store.buffer.get(store.buffer.first);
    if (!until) return;
    const options = { ...query, until: new Date(until.time).toISOString() };
    const found = (await request("GET", path, { path: names, query: options })) as LogLines;
    store.prepend(found.items as readonly SentLine[], found.cut);
  };
  return {
    store,
    error: stream.problem ? new ProblemError(stream.problem) : error,
    loading,
    live: live === true,
    loadOlder,
  };
}

async function poll(
  store: LogStore,
  finished: boolean,
  signal: AbortSignal,
  ask: () => Promise<LogLines>,
  answered: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const found = await ask();
      if (signal.aborted) return;
      store.addPolled(found.items as readonly SentLine[], found.cut);
      answered(null);
      if (finished) {
        store.end();
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      answered(error);
      if (error instanceof ProblemError && error.status < 500) return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
