/** A job's place in its queue, as Kueue tells it to those who may know. Pure. */
import type { Queue } from "../api/types";
import { words } from "../words";

export interface Place {
  readonly queue: string;
  readonly clusterQueue: string;
  /** Counted from 1; null where the cluster does not say. */
  readonly position: number | null;
  readonly clusterPosition: number | null;
  /** How many jobs wait, in all of them; null where it is not known. */
  readonly pending: number;
  readonly clusterPending: number | null;
}

/** Null for a queue that is not there. */
export function placeOf(
  job: { readonly kind: string; readonly name: string },
  queueName: string,
  queues: readonly Queue[],
): Place | null {
  const queue = queues.find((one) => one.name === queueName);
  if (!queue) return null;
  const own = queue.waiting?.find((one) => one.kind === job.kind && one.name === job.name);
  return {
    queue: queue.name,
    clusterQueue: queue.clusterQueue,
    position: own?.position ?? null,
    clusterPosition: own?.clusterPosition ?? null,
    pending: queue.pending,
    clusterPending: queue.clusterPending,
  };
}

/** Short, for a cell of a table; empty where the place is not known. */
export function placeWords(place: Place | null): string {
  return place?.position ? words.queues.placeShort(place.position, place.pending) : "";
}

/** Whole, for the page of the job. */
export function placeSentence(place: Place): string {
  const text = words.queues;
  const said = [
    place.position
      ? text.placeOf(place.position, Math.max(place.pending, place.position), place.queue)
      : text.pendingIn(place.pending, place.queue),
  ];
  if (place.clusterPosition !== null)
    said.push(text.clusterPlace(place.clusterPosition, place.clusterQueue));
  return said.join(", ");
}
