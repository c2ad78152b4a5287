import type { LogBuffer } from "./buffer";
import { barSketch } from "./clean";
import { type Line, sourceOf } from "./line";

/** Which lines are shown. What is empty or null takes all. */
export interface LineFilter {
  readonly ranks: ReadonlySet<number> | null;
  readonly pod: string;
  readonly attempt: number | null;
  /** the least level that is taken, a place in LEVELS; -1 takes all */
  readonly least: number;
  readonly from: number | null;
  readonly until: number | null;
  readonly text: string;
  /** whether `text` is a regular expression; those are tried in a Worker and nowhere else */
  readonly expression: boolean;
  /** of drawings of one progress bar, one after the other, only the last is shown */
  readonly bars: boolean;
}

export const EVERYTHING: LineFilter = {
  ranks: null,
  pod: "",
  attempt: null,
  least: -1,
  from: null,
  until: null,
  text: "",
  expression: false,
  bars: false,
};

export function takesAll(filter: LineFilter): boolean {
  return (
    filter.ranks === null &&
    filter.pod === "" &&
    filter.attempt === null &&
    filter.least < 0 &&
    filter.from === null &&
    filter.until === null &&
    filter.text === "" &&
    !filter.bars
  );
}

/** All but the regular expression. Notes are always shown: they say that lines are missing. */
export function matcher(filter: LineFilter): (line: Line) => boolean {
  const words = filter.expression ? "" : filter.text.toLowerCase();
  return (line) =>
    line.note ||
    ((filter.ranks === null || (line.rank !== null && filter.ranks.has(line.rank))) &&
      (filter.pod === "" || line.pod === filter.pod) &&
      (filter.attempt === null || line.attempt === filter.attempt) &&
      (filter.least < 0 || (line.level >= filter.least && line.level <= 3)) &&
      (filter.from === null || line.time >= filter.from) &&
      (filter.until === null || line.time <= filter.until) &&
      (words === "" || line.text.toLowerCase().includes(words)));
}

/** The numbers of lines, growing at the end; a place where many are is cheap to keep. */
export class Numbers {
  private data = new Float64Array(1024);
  private begin = 0;
  private stop = 0;

  get size(): number {
    return this.stop - this.begin;
  }

  at(index: number): number {
    return this.data[this.begin + index] ?? -1;
  }

  push(number: number): void {
    if (this.stop === this.data.length) {
      const grown = new Float64Array(Math.max(1024, this.size * 2));
      grown.set(this.data.subarray(this.begin, this.stop));
      this.data = grown;
      this.stop = this.size;
      this.begin = 0;
    }
    this.data[this.stop] = number;
    this.stop += 1;
  }

  remove(number: number): void {
    const index = this.indexOf(number);
    if (this.at(index) !== number) return;
    const place = this.begin + index;
    this.data.copyWithin(place, place + 1, this.stop);
    this.stop -= 1;
  }

  /** Without those from this number on. */
  cutFrom(number: number): void {
    while (this.size > 0 && this.at(this.size - 1) >= number) this.stop -= 1;
  }

  /** Without those before this number. */
  cutBefore(number: number): void {
    this.begin += this.indexOf(number);
  }

  /** The index of the first that is not smaller. */
  indexOf(number: number): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at(middle) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  clear(): void {
    this.begin = 0;
    this.stop = 0;
  }
}

/** Tries lines by a regular expression; answers, for each, whether it matches. */
export interface Matches {
  test(texts: readonly string[]): Promise<readonly boolean[]>;
}

/** Lines that are given to a Worker at once. */
const AT_ONCE = 4000;

/**
 * The lines of a buffer that a filter takes. `step` looks at more of them for some milliseconds, so
 * that a filter over a million lines never holds the page up; `done` says that all are looked at.
 */
export class FilteredLines {
  private readonly taken = new Numbers();
  private readonly takes: (line: Line) => boolean;
  private readonly all: boolean;
  private next: number;
  /** grows when the buffer changed below `next`: what a Worker answers then is thrown away */
  private round = 0;
  /** of each source, the progress bar that it wrote last, where nothing else came after it */
  private readonly open = new Map<string, { number: number; sketch: string }>();

  constructor(
    readonly buffer: LogBuffer,
    readonly filter: LineFilter,
    private readonly matches: Matches | null = null,
  ) {
    this.takes = matcher(filter);
    this.all = takesAll(filter);
    this.next = buffer.first;
  }

  get size(): number {
    return this.all ? this.buffer.size : this.taken.size;
  }

  get done(): boolean {
    return this.all || this.next >= this.buffer.end;
  }

  number(index: number): number {
    return this.all ? this.buffer.first + index : this.taken.at(index);
  }

  /** Where a line is among those that are shown, or the next one that is. */
  indexOf(number: number): number {
    return this.all
      ? Math.min(Math.max(number - this.buffer.first, 0), this.buffer.size)
      : this.taken.indexOf(number);
  }

  /** The buffer has changed from this number on. */
  changed(from: number): void {
    if (this.all) return;
    if (from < this.next) {
      this.next = from;
      this.taken.cutFrom(from);
      this.round += 1;
      this.open.clear();
    }
    this.taken.cutBefore(this.buffer.first);
    this.next = Math.max(this.next, this.buffer.first);
  }

  /** Looks at some lines at least, and at more until the time is over; whether anything is left. */
  async step(milliseconds: number): Promise<boolean> {
    const until = performance.now() + milliseconds;
    while (!this.done) {
      if (this.matches === null) this.look(Math.min(this.next + 500, this.buffer.end));
      else await this.ask(this.matches);
      if (performance.now() >= until) break;
    }
    return !this.done;
  }

  private look(end: number): void {
    for (; this.next < end; this.next += 1) {
      const line = this.buffer.get(this.next);
      if (line !== undefined && this.takes(line)) this.take(line);
    }
  }

  private take(line: Line): void {
    if (this.filter.bars && !line.note) this.withoutEarlierDrawing(line);
    this.taken.push(line.number);
  }

  private withoutEarlierDrawing(line: Line): void {
    const source = `${line.attempt} ${sourceOf(line)} ${line.stream}`;
    const sketch = barSketch(line.text);
    const before = this.open.get(source);
    if (sketch === "") {
      if (before !== undefined) this.open.delete(source);
      return;
    }
    if (before?.sketch === sketch) this.taken.remove(before.number);
    this.open.set(source, { number: line.number, sketch });
  }

  private async ask(matches: Matches): Promise<void> {
    const { round } = this;
    const end = Math.min(this.next + AT_ONCE, this.buffer.end);
    const found: number[] = [];
    const texts: string[] = [];
    for (let number = this.next; number < end; number += 1) {
      const line = this.buffer.get(number);
      if (line === undefined || !this.takes(line)) continue;
      found.push(number);
      texts.push(line.note ? "" : line.text);
    }
    const answers = texts.length > 0 ? await matches.test(texts) : [];
    if (round !== this.round) return;
    found.forEach((number, index) => {
      const line = this.buffer.get(number);
      if (line !== undefined && (answers[index] === true || line.note)) this.take(line);
    });
    this.next = Math.max(end, this.buffer.first);
  }
}
