/** Lines as a file. Made in parts, so that a million lines do not hold the page up. */
import { LEVELS } from "./level";
import type { Line } from "./line";
import { sourceOf } from "./line";

export type Format = "text" | "json";

const AT_ONCE = 5_000;

/** As `odh mpijob logs` prints a line, with its time. */
export function textOf(line: Line): string {
  const time = new Date(line.time).toISOString();
  return line.note
    ? `${time} --- ${line.text} ---\n`
    : `${time} [${sourceOf(line)}] ${line.text}\n`;
}

export function jsonOf(line: Line): string {
  const { pod, stream, rank, text, attempt, note } = line;
  const time = new Date(line.time).toISOString();
  const level = LEVELS[line.level] ?? null;
  return `${JSON.stringify({ time, pod, stream, rank, attempt, level, note, text })}\n`;
}

/** The file's content: text, or one JSON object a line. */
export async function exported(
  size: number,
  line: (index: number) => Line | undefined,
  format: Format,
): Promise<Blob> {
  const parts: string[] = [];
  const write = format === "text" ? textOf : jsonOf;
  for (let begin = 0; begin < size; begin += AT_ONCE) {
    let part = "";
    for (let index = begin; index < Math.min(size, begin + AT_ONCE); index += 1) {
      const found = line(index);
      if (found) part += write(found);
    }
    parts.push(part);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return new Blob(parts, { type: format === "text" ? "text/plain" : "application/x-ndjson" });
}

export function download(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
