import { words } from "../words";
import { LogBuffer } from "./buffer";
import type { SentLine } from "./line";
import { LineReader, unseen } from "./read";

/** Lines, as they were sent, in which an answer that overlaps is looked for. */
const REMEMBERED = 20_000;

export interface Sent {
  readonly items: readonly SentLine[];
  /** lines that the server passed over, because there were too many */
  readonly skipped?: number;
}

/**
 * The lines of one job while its page is open. Listeners are told at most once in `PAUSE_MS`, however
 * fast lines come.
 */
export class LogStore {
  static readonly PAUSE_MS = 100;

  buffer = new LogBuffer();
  /** grows with every change; `changedFrom` is the first line that the last change touched */
  version = 0;
  /** grows when lines were put before those that were there, so that every number is another's */
  generation = 0;
  /** whether there are older lines on the server than the oldest here */
  older = false;
  ended = false;

  private reader = this.newReader();
  private remembered: SentLine[] = [];
  private overlap = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<(from: number) => void>();
  private from = Number.POSITIVE_INFINITY;

  private newReader(): LineReader {
    return new LineReader({ lost: words.logs.lost });
  }

  subscribe = (listener: (from: number) => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The connection was lost: what comes next may begin with lines that are here. */
  interrupted(): void {
    this.overlap = true;
  }

  add(sent: Sent): void {
    let items = sent.items;
    if (this.overlap) {
      items = unseen(this.remembered, items);
      this.overlap = false;
    }
    this.remember(items);
    const lines = this.reader.read(items);
    if (sent.skipped) {
      const last = lines[0] ?? this.buffer.get(this.buffer.end - 1);
      lines.unshift({
        time: last?.time ?? Date.now(),
        pod: last?.pod ?? "",
        stream: "stdout",
        rank: null,
        attempt: last?.attempt ?? 1,
        level: 255,
        note: true,
        text: words.logs.skipped(sent.skipped),
      });
    }
    if (lines.length > 0) this.changed(this.buffer.append(lines));
  }

  /** What a poll answers: its lines may overlap those that are here, and may begin after them. */
  addPolled(items: readonly SentLine[], cut: boolean): void {
    if (this.buffer.size === 0) this.older = cut;
    this.overlap = true;
    this.add({ items });
  }

  /** Lines that are older than all that are here. */
  prepend(items: readonly SentLine[], cut: boolean): void {
    const before = this.buffer;
    const fresh = unseen(this.remembered, items);
    const buffer = new LogBuffer();
    buffer.append(this.newReader().read(fresh));
    const later = function* () {
      for (let number = before.first; number < before.end; number += 1) {
        const line = before.get(number);
        if (line) yield line;
      }
    };
    buffer.append(later());
    this.buffer = buffer;
    this.remembered = [...fresh, ...this.remembered].slice(-REMEMBERED);
    this.older = cut && fresh.length > 0;
    this.generation += 1;
    this.changed(0);
  }

  end(): void {
    this.ended = true;
    this.changed(this.buffer.end);
  }

  clear(): void {
    this.buffer = new LogBuffer();
    this.reader = this.newReader();
    this.remembered = [];
    this.overlap = false;
    this.older = false;
    this.ended = false;
    this.generation += 1;
    this.changed(0);
  }

  /** The time from which a poll asks for lines. */
  get newest(): string | null {
    return this.remembered[this.remembered.length - 1]?.time ?? null;
  }

  private remember(items: readonly SentLine[]): void {
    this.remembered.push(...items);
    if (this.remembered.length > 2 * REMEMBERED) {
      this.remembered = this.remembered.slice(-REMEMBERED);
    }
  }

  private changed(from: number): void {
    this.version += 1;
    this.from = Math.min(this.from, from);
    this.timer ??= setTimeout(() => {
      const first = this.from;
      this.timer = undefined;
      this.from = Number.POSITIVE_INFINITY;
      for (const listener of this.listeners) listener(first);
    }, LogStore.PAUSE_MS);
  }
}
