import type { Line, NewLine } from "./line";

const CHUNK = 4096;
const NO_RANK = -1;
const STDERR = 1;
const NOTE = 2;

/** The lines that are kept at most; older ones are given up, and counted. */
export const MOST_LINES = 1_000_000;
/** Characters that are kept at most. */
export const MOST_CHARACTERS = 192 * 1024 * 1024;

/**
 * One part of the buffer: numbers in typed arrays, so that a million lines take little more memory
 * than their text.
 */
class Chunk {
  readonly times = new Float64Array(CHUNK);
  readonly ranks = new Int32Array(CHUNK);
  readonly pods = new Uint16Array(CHUNK);
  readonly attempts = new Uint16Array(CHUNK);
  readonly levels = new Uint8Array(CHUNK);
  readonly flags = new Uint8Array(CHUNK);
  readonly texts: string[] = [];
  characters = 0;

  get size(): number {
    return this.texts.length;
  }

  set(at: number, line: NewLine, pod: number): void {
    this.times[at] = line.time;
    this.ranks[at] = line.rank ?? NO_RANK;
    this.pods[at] = pod;
    this.attempts[at] = Math.min(line.attempt, 65535);
    this.levels[at] = line.level;
    this.flags[at] = (line.stream === "stderr" ? STDERR : 0) | (line.note ? NOTE : 0);
    this.texts[at] = line.text;
  }

  /** Where a line of this time belongs among those that are here: after all that are not later. */
  place(time: number): number {
    let at = this.size;
    while (at > 0 && (this.times[at - 1] ?? 0) > time) at -= 1;
    return at;
  }

  insert(at: number, line: NewLine, pod: number): void {
    for (const numbers of [
      this.times,
      this.ranks,
      this.pods,
      this.attempts,
      this.levels,
      this.flags,
    ]) {
      numbers.copyWithin(at + 1, at, this.size);
    }
    this.texts.splice(at, 0, line.text);
    this.set(at, line, pod);
  }
}

/**
 * A job's lines in the order of their time, bounded in number and characters.
 *
 * Lines have numbers that never change once `settled` has passed them. A line that comes late is put
 * in its place among the newest; `append` returns the first number that changed by it, so that
 * views made from the buffer can be made anew from there.
 */
export class LogBuffer {
  private chunks: Chunk[] = [new Chunk()];
  private readonly podNumbers = new Map<string, number>();
  private readonly podNames: string[] = [];
  private characters = 0;
  private base = 0;

  constructor(
    private readonly mostLines = MOST_LINES,
    private readonly mostCharacters = MOST_CHARACTERS,
  ) {}

  /** The number of the oldest line that is still here. */
  get first(): number {
    return this.base;
  }

  /** One more than the number of the newest line. */
  get end(): number {
    return this.base + (this.chunks.length - 1) * CHUNK + this.newest.size;
  }

  get size(): number {
    return this.end - this.base;
  }

  /** Names of all pods that lines came from. */
  get pods(): readonly string[] {
    return this.podNames;
  }

  private get newest(): Chunk {
    const chunk = this.chunks[this.chunks.length - 1];
    if (chunk === undefined) throw new Error("a buffer has at least one part");
    return chunk;
  }

  append(lines: Iterable<NewLine>): number {
    let changed = this.end;
    for (const line of lines) changed = Math.min(changed, this.put(line));
    this.evict();
    return Math.max(changed, this.base);
  }

  private put(line: NewLine): number {
    if (this.newest.size === CHUNK) this.chunks.push(new Chunk());
    const chunk = this.newest;
    const at = chunk.place(line.time);
    const number = this.base + (this.chunks.length - 1) * CHUNK + at;
    const pod = this.podNumber(line.pod);
    if (at === chunk.size) chunk.set(at, line, pod);
    else chunk.insert(at, line, pod);
    chunk.characters += line.text.length;
    this.characters += line.text.length;
    return number;
  }

  private evict(): void {
    while (
      this.chunks.length > 1 &&
      (this.size > this.mostLines || this.characters > this.mostCharacters)
    ) {
      this.characters -= this.chunks.shift()?.characters ?? 0;
      this.base += CHUNK;
    }
  }

  private podNumber(name: string): number {
    const known = this.podNumbers.get(name);
    if (known !== undefined) return known;
    const number = Math.min(this.podNames.length, 65535);
    if (number === this.podNames.length) this.podNames.push(name);
    this.podNumbers.set(name, number);
    return number;
  }

  private at(number: number): readonly [Chunk, number] | undefined {
    const offset = number - this.base;
    const chunk = this.chunks[Math.floor(offset / CHUNK)];
    const at = offset % CHUNK;
    return chunk === undefined || offset < 0 || at >= chunk.size ? undefined : [chunk, at];
  }

  get(number: number): Line | undefined {
    const found = this.at(number);
    if (found === undefined) return undefined;
    const [chunk, at] = found;
    const rank = chunk.ranks[at] ?? NO_RANK;
    const flags = chunk.flags[at] ?? 0;
    return {
      number,
      time: chunk.times[at] ?? 0,
      pod: this.podNames[chunk.pods[at] ?? 0] ?? "",
      stream: (flags & STDERR) === 0 ? "stdout" : "stderr",
      rank: rank === NO_RANK ? null : rank,
      text: chunk.texts[at] ?? "",
      attempt: chunk.attempts[at] ?? 1,
      level: chunk.levels[at] ?? 0,
      note: (flags & NOTE) !== 0,
    };
  }

  text(number: number): string {
    const found = this.at(number);
    return found === undefined ? "" : (found[0].texts[found[1]] ?? "");
  }

  /** The first line of at least this level from a number on; -1 where there is none. */
  findLevel(least: number, from = this.base): number {
    for (let number = Math.max(from, this.base); number < this.end; number += 1) {
      const found = this.at(number);
      const level = found === undefined ? undefined : found[0].levels[found[1]];
      if (level !== undefined && level >= least && level <= 3) return number;
    }
    return -1;
  }

  /** The first line that contains a text; -1 where there is none. */
  findText(text: string, from = this.base): number {
    for (let number = Math.max(from, this.base); number < this.end; number += 1) {
      if (this.text(number).includes(text)) return number;
    }
    return -1;
  }

  /** Numbers go on: what is put in afterwards is not taken for what was there before. */
  clear(): void {
    this.base = this.end;
    this.chunks = [new Chunk()];
    this.characters = 0;
  }
}
