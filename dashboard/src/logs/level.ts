/** How serious a line is, by the words at its beginning: the same rules as the server's. */

export const LEVELS = ["debug", "info", "warning", "error"] as const;
export type Level = (typeof LEVELS)[number];

/** Of a line that says nothing about it. */
export const NO_LEVEL = 255;

const WORDS: Readonly<Record<string, number>> = {
  debug: 0,
  trace: 0,
  info: 1,
  notice: 1,
  warn: 2,
  warning: 2,
  error: 3,
  critical: 3,
  fatal: 3,
};
const BEGINNING = 200;
const UPPER = /\b(DEBUG|TRACE|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b/;
const NAMED =
  /(?:\blevel\W{1,4}|\[|^)(debug|trace|info|notice|warn|warning|error|critical|fatal)\b/i;
const EXCEPTION = /^(?:[A-Za-z_]\w{0,80}\.){0,8}\w{0,80}(?:Error|Exception)\b/;

/** Its place in LEVELS, or NO_LEVEL. */
export function level(text: string): number {
  const beginning = text.slice(0, BEGINNING);
  if (beginning.startsWith("Traceback (most recent call last)") || EXCEPTION.test(beginning)) {
    return 3;
  }
  const found = UPPER.exec(beginning) ?? NAMED.exec(beginning);
  return WORDS[found?.[1]?.toLowerCase() ?? ""] ?? NO_LEVEL;
}

/** An indented line belongs to the one before it of the same source, as those of tracebacks do. */
export class LevelReader {
  private readonly before = new Map<string, number>();

  read(source: string, text: string): number {
    if (text === "" || !/^\s/.test(text)) {
      if (this.before.size > 8192) this.before.clear();
      this.before.set(source, level(text));
    }
    return this.before.get(source) ?? NO_LEVEL;
  }
}
