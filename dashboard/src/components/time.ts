/** Times and durations in words. Pure. */
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function millis(time: string | number | null | undefined): number | null {
  if (time === null || time === undefined) return null;
  const found = typeof time === "number" ? time : Date.parse(time);
  return Number.isNaN(found) ? null : found;
}

/** "12s", "3m 20s", "2h 5m", "3d 4h": two units at most. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / SECOND) * SECOND);
  if (whole < MINUTE) return `${whole / SECOND}s`;
  const units: [number, string][] = [
    [DAY, "d"],
    [HOUR, "h"],
    [MINUTE, "m"],
    [SECOND, "s"],
  ];
  const first = units.findIndex(([size]) => whole >= size);
  const [big, bigName] = units[first] as [number, string];
  const [small, smallName] = units[first + 1] as [number, string];
  const rest = Math.floor((whole % big) / small);
  return `${Math.floor(whole / big)}${bigName}${rest ? ` ${rest}${smallName}` : ""}`;
}

/** "just now", "5 minutes ago". */
export function ago(time: number, now: number): string {
  const passed = Math.max(0, now - time);
  const units: [number, string][] = [
    [DAY, "day"],
    [HOUR, "hour"],
    [MINUTE, "minute"],
    [SECOND, "second"],
  ];
  for (const [size, name] of units) {
    const count = Math.floor(passed / size);
    if (count >= 1) return `${count} ${name}${count === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

export function clock(time: number): string {
  return new Date(time).toLocaleTimeString("en-US", { hour12: false });
}

export function full(time: number): string {
  return new Date(time).toLocaleString("en-US", {
    dateStyle: "medium",
    timeStyle: "long",
    hour12: false,
  });
}
