import { clean } from "./clean";
import { LevelReader, NO_LEVEL } from "./level";
import type { NewLine, SentLine } from "./line";

/** Says that lines are gone; the words are the caller's, for the texts are in one catalogue. */
export interface Notes {
  lost(lines: number): string;
}

/**
 * What the server sends as lines of the page, in the order in which it comes: escape sequences are
 * gone, notes and gaps are lines of their own before the line that they are about.
 */
export class LineReader {
  private levels = new LevelReader();

  constructor(private readonly notes: Notes) {}

  read(sent: readonly SentLine[]): NewLine[] {
    const lines: NewLine[] = [];
    for (const one of sent) {
      const time = Date.parse(one.time);
      for (const text of [...(one.lost > 0 ? [this.notes.lost(one.lost)] : []), ...one.notes]) {
        lines.push(this.note(text, time, one));
      }
      const text = clean(one.text);
      const source = `${one.pod} ${one.rank ?? ""}`;
      lines.push({
        time,
        pod: one.pod,
        stream: one.stream,
        rank: one.rank,
        text,
        attempt: one.attempt,
        level: this.levels.read(source, text),
        note: false,
      });
    }
    return lines;
  }

  private note(text: string, time: number, line: SentLine): NewLine {
    const { pod, rank, attempt } = line;
    return { time, pod, stream: "stdout", rank, text, attempt, level: NO_LEVEL, note: true };
  }
}

/**
 * The lines that a second answer has and a first one had not: both end now, and the second begins
 * somewhere within the first. Equal lines are counted, so a line that a program prints twice is
 * kept twice.
 */
export function unseen(before: readonly SentLine[], now: readonly SentLine[]): SentLine[] {
  const seen = new Map<string, number>();
  for (const line of before) {
    const key = keyOf(line);
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  return now.filter((line) => {
    const key = keyOf(line);
    const left = seen.get(key) ?? 0;
    if (left > 0) seen.set(key, left - 1);
    return left === 0;
  });
}

function keyOf(line: SentLine): string {
  return `${line.time}\u0000${line.pod}\u0000${line.rank ?? ""}\u0000${line.stream}\u0000${line.text}`;
}
