/**
 * Whether what the pages show is current. Streams and queries report here; the shell's banner says
 * the worst of what they report. Nothing that is shown is changed by this: old data stays, and is
 * marked as old.
 */
import { useSyncExternalStore } from "react";

export type Phase = "live" | "reconnecting" | "ended";

export interface Connection {
  phase: "live" | "reconnecting" | "stale" | "loggedOut";
  /** When the first of the failing sources was last current. */
  since: number | null;
}

export const STALE_AFTER_MS = 15_000;

export class ConnectionStore {
  private readonly failing = new Map<string, number>();
  private readonly listeners = new Set<() => void>();
  private out = false;
  private state: Connection = { phase: "live", since: null };

  constructor(private readonly now: () => number = Date.now) {}

  report(source: string, phase: Phase): void {
    if (phase === "reconnecting") {
      if (!this.failing.has(source)) this.failing.set(source, this.now());
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
    const since = this.failing.size ? Math.min(...this.failing.values()) : null;
    const old = since !== null && this.now() - since >= STALE_AFTER_MS;
    const phase = this.out ? "loggedOut" : since === null ? "live" : old ? "stale" : "reconnecting";
    if (phase === this.state.phase && since === this.state.since) return;
    this.state = { phase, since };
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
