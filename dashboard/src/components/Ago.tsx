import { useEffect, useState } from "react";
import { ago, full, millis } from "./time";

/** The time now, anew every `every` milliseconds. */
export function useNow(every: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
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
