/**
 * Server-sent events. The browser reconnects by itself after a lost connection; after an answer
 * that is no stream it does not, and neither after a problem that passes, so we try again with
 * growing pauses. Danger: a stream that ended must not leave its page looking current, so every
 * stream reports to the connection store.
 */
import { useEffect, useId, useRef, useState } from "react";
import { connection } from "./connection";
import type { Problem } from "./schema";

export interface StreamState {
  phase: "connecting" | "live" | "reconnecting" | "ended";
  /** Why the server ended it: the login has expired, the right is gone. */
  problem: Problem | null;
}

export type Handlers = Record<string, (data: unknown, lastEventId: string) => void>;

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const START: StreamState = { phase: "connecting", problem: null };

/** Listens to `url` while it is not null. `handlers` has a function for each event's name. */
export function useStream(url: string | null, handlers: Handlers): StreamState {
  const [state, setState] = useState<StreamState>(START);
  const latest = useRef(handlers);
  latest.current = handlers;
  const source = useId();

  useEffect(() => {
    if (url === null) return undefined;
    setState(START);
    const opened = open(url, Object.keys(latest.current), {
      event: (name, data, id) => latest.current[name]?.(data, id),
      phase: (phase, problem) => {
        setState({ phase, problem });
        const silent = problem === null ? "server" : "cluster";
        connection.report(source, phase === "connecting" ? "ended" : phase, silent);
        if (problem?.status === 401) connection.loggedOut();
      },
    });
    return () => {
      opened();
      connection.report(source, "ended");
    };
  }, [url, source]);
  return state;
}

interface Listener {
  event: (name: string, data: unknown, id: string) => void;
  phase: (phase: StreamState["phase"], problem: Problem | null) => void;
}

/** Returns what closes it. Names of the events `error` and `end` of the contract end the stream. */
export function open(url: string, names: string[], listener: Listener): () => void {
  let source: EventSource | null = null;
  let pause = FIRST_PAUSE_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastId = "";

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const end = (problem: Problem | null) => {
    close();
    listener.phase("ended", problem);
  };
  const later = () => {
    close();
    timer = setTimeout(connect, pause);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  };
  /** A right that is gone stays so; a cluster answers again, and a login may be a new one. */
  const ended = (problem: Problem) => {
    if (problem.status !== 401 && problem.status < 500) return end(problem);
    listener.phase(problem.status === 401 ? "ended" : "reconnecting", problem);
    later();
  };
  const connect = () => {
    source = new EventSource(resumed(url, lastId));
    source.onopen = () => {
      pause = FIRST_PAUSE_MS;
      listener.phase("live", null);
    };
    // The browser's own `error` has no data; the server's event of that name has a problem.
    source.addEventListener("error", (event) => {
      const data = (event as MessageEvent<string>).data;
      if (typeof data === "string") return ended(JSON.parse(data) as Problem);
      if (source?.readyState !== EventSource.CLOSED) return listener.phase("reconnecting", null);
      // Somebody has answered, and no stream: why, only a query is told, and it says so.
      listener.phase("ended", null);
      later();
    });
    for (const name of names.filter((one) => one !== "error")) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        lastId = event.lastEventId || lastId;
        listener.event(name, JSON.parse(event.data), event.lastEventId);
        if (name === "end") end(null);
      });
    }
  };
  connect();
  return close;
}

function resumed(url: string, lastId: string): string {
  if (!lastId) return url;
  return `${url}${url.includes("?") ? "&" : "?"}lastEventId=${encodeURIComponent(lastId)}`;
}
