/**
 * Whether what the pages show is current. Streams and queries report here; the shell's banner says
 * the worst of what they report. Nothing that is shown is changed by this: old data stays, and is
 * marked as old.
 */
import { useSyncExternalStore } from "react";

export type Phase = "live" | "reconnecting" | "ended";

/** Who does not answer: our server, or the cluster behind it, of which our server then says so. */
export type Silent = "server" | "cluster";

export interface Connection {
  phase: "live" | "reconnecting" | "stale" | "loggedOut";
  silent: Silent;
  /** When the first of the failing sources was last current. */
  since: number | null;
}

export const STALE_AFTER_MS = 15_000;

export class ConnectionStore {
  private readonly failing = new Map<string, { since: number; silent: Silent }>();
  private readonly listeners = new Set<() => void>();
  private out = false;
  private state: Connection = { phase: "live", silent: "server", since: null };

  constructor(private readonly now: () => number = Date.now) {}

  report(source: string, phase: Phase, silent: Silent = "server"): void {
    if (phase === "reconnecting") {
      const since = this.failing.get(source)?.since ?? this.now();
      this.failing.set(source, { since, silent });
    } else this.failing.delete(source);
    this.settle();
  }

  loggedOut(): void {
    this.out = true;
    this.settle();
  }

  /** The server has answered with this browser's login: it may be a new one, of another window. */
  loggedIn(): void {
    this.out = false;
    this.settle();
  }

  /** Time passes; called by the banner while something fails. */
  settle = (): void => {
    const failing = [...this.failing.values()];
    const since = failing.length ? Math.min(...failing.map((one) => one.since)) : null;
    // Whoever says that of the cluster was answered by the server.
    const silent = failing.some((one) => one.silent === "cluster") ? "cluster" : "server";
    const old = since !== null && this.now() - since >= STALE_AFTER_MS;
    const phase = this.out ? "loggedOut" : since === null ? "live" : old ? "stale" : "reconnecting";
    const { state } = this;
    if (phase === state.phase && since === state.since && silent === state.silent) return;
    this.state = { phase, silent, since };
    for (const listener of this.listeners) listener();
  };

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  current = (): Connection => this.state;
}

export const connection = new ConnectionStore();

/** A stream over a network that is gone stays open in silence for minutes; the browser knows sooner. */
export function watchNetwork(store: ConnectionStore = connection): void {
  window.addEventListener("offline", () => store.report("network", "reconnecting"));
  window.addEventListener("online", () => store.report("network", "live"));
}

export function useConnection(): Connection {
  return useSyncExternalStore(connection.subscribe, connection.current);
}
