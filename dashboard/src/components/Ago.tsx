import { useMemo, useSyncExternalStore } from "react";
import { ago, full, millis } from "./time";

const SHORT_MS = 1_000;

/** One timer for all that show time as it passes: a list has hundreds of them. */
class Clock {
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private time = Date.now();

  constructor(private readonly every: number) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    if (this.listeners.size === 0) this.timer = setInterval(this.tick, this.every);
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) clearInterval(this.timer);
    };
  };

  /** The same for a while also before anybody listens, as React asks twice. */
  readonly now = (): number => {
    if (this.listeners.size === 0 && Date.now() - this.time >= SHORT_MS) this.time = Date.now();
    return this.time;
  };

  private readonly tick = (): void => {
    this.time = Date.now();
    for (const listener of this.listeners) listener();
  };
}

const clocks = new Map<number, Clock>();

/** The time now, anew every `every` milliseconds. */
export function useNow(every: number): number {
  const clock = useMemo(() => {
    const found = clocks.get(every) ?? new Clock(every);
    clocks.set(every, found);
    return found;
  }, [every]);
  return useSyncExternalStore(clock.subscribe, clock.now);
}

/** "5 minutes ago", with the exact time for who points at it and for machines. */
export function Ago({ time }: { time: string | null | undefined }) {
  const now = useNow(10_000);
  const at = millis(time);
  if (at === null) return null;
  return (
    <time dateTime={new Date(at).toISOString()} title={full(at)} className="odh-nowrap">
      {ago(at, now)}
    </time>
  );
}
