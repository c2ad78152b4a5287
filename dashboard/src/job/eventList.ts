import type { Event } from "../api/types";

export function eventKey(event: Event): string {
  return `${event.time} ${event.type} ${event.reason} ${event.message}`;
}

/** With one more, oldest first. */
export function withEvent(events: readonly Event[], event: Event): Event[] {
  const after = [...events, event];
  const before = events.at(-1);
  if (before && before.time > event.time) {
    after.sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
  }
  return after;
}
