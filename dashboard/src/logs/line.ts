/** A line of a job's logs, as the page holds it. */

/** As the server sends it. */
export interface SentLine {
  readonly time: string;
  readonly pod: string;
  readonly stream: "stdout" | "stderr";
  readonly rank: number | null;
  readonly text: string;
  readonly attempt: number;
  readonly lost: number;
  readonly notes: readonly string[];
}

/** `number` is its place since the page was opened, and stays when older lines are given up. */
export interface Line {
  readonly number: number;
  readonly time: number;
  readonly pod: string;
  readonly stream: "stdout" | "stderr";
  readonly rank: number | null;
  readonly text: string;
  readonly attempt: number;
  readonly level: number;
  /** a sentence for the reader and no output: an attempt begins, lines are missing */
  readonly note: boolean;
}

/** One that is to be put into the buffer. */
export type NewLine = Omit<Line, "number">;

/** `[3]`, the rank as `odh mpijob logs` prints it; the pod of a line that no rank wrote. */
export function sourceOf(line: Pick<Line, "rank" | "pod">): string {
  return line.rank === null ? line.pod : String(line.rank);
}
