import { describe, expect, it } from "vitest";
import { LogBuffer } from "./buffer";
import type { NewLine } from "./line";

function line(time: number, text: string, more: Partial<NewLine> = {}): NewLine {
  return {
    time,
    pod: "train-launcher",
    stream: "stdout",
    rank: 0,
    text,
    attempt: 1,
    level: 255,
    note: false,
    ...more,
  };
}

function texts(buffer: LogBuffer): string[] {
  const found: string[] = [];
  for (let number = buffer.first; number < buffer.end; number += 1) found.push(buffer.text(number));
  return found;
}

describe("a log buffer", () => {
  it("gives back what was put in", () => {
    const buffer = new LogBuffer();
    buffer.append([line(5, "a", { rank: null, stream: "stderr", level: 3, attempt: 2 })]);
    expect(buffer.get(0)).toEqual({
      ...line(5, "a", { rank: null, stream: "stderr", level: 3, attempt: 2 }),
      number: 0,
    });
    expect(buffer.get(1)).toBeUndefined();
    expect(buffer.get(-1)).toBeUndefined();
  });

  it("merges lines of several ranks by their time, and keeps equal times in their order", () => {
    const buffer = new LogBuffer();
    buffer.append([line(1, "a"), line(3, "c"), line(3, "d")]);
    const changed = buffer.append([line(2, "b", { rank: 1 }), line(3, "e", { rank: 1 })]);
    expect(texts(buffer)).toEqual(["a", "b", "c", "d", "e"]);
    expect(changed).toBe(1);
    expect(buffer.get(1)?.rank).toBe(1);
    expect(buffer.get(2)?.rank).toBe(0);
  });

  it("holds a million lines and no more, whatever is put in", () => {
    const most = 1_000_000;
    const buffer = new LogBuffer(most);
    const batch = Array.from({ length: 10_000 }, (_, at) => line(at, "x"));
    for (let round = 0; round < 120; round += 1) {
      buffer.append(batch.map((one, at) => ({ ...one, time: round * 10_000 + at })));
    }
    expect(buffer.end).toBe(1_200_000);
    expect(buffer.size).toBeLessThanOrEqual(most);
    expect(buffer.size).toBeGreaterThan(most - 5_000);
    expect(buffer.get(buffer.first)?.time).toBe(buffer.first);
    expect(buffer.get(buffer.end - 1)?.time).toBe(1_199_999);
    expect(buffer.get(buffer.first - 1)).toBeUndefined();
  }, 60_000);

  it("is bounded in characters too", () => {
    const buffer = new LogBuffer(1_000_000, 50_000_000);
    for (let at = 0; at < 10_000; at += 1) buffer.append([line(at, "x".repeat(16_384))]);
    expect(buffer.size * 16_384).toBeLessThan(50_000_000 + 4096 * 16_384);
    expect(buffer.first).toBeGreaterThan(0);
  }, 30_000);

  it("finds the first line of a level and of a text", () => {
    const buffer = new LogBuffer();
    buffer.append([line(1, "fine"), line(2, "bad", { level: 3 }), line(3, "none")]);
    expect(buffer.findLevel(3)).toBe(1);
    expect(buffer.findText("none")).toBe(2);
    expect(buffer.findText("nowhere")).toBe(-1);
  });

  it("numbers go on after it was emptied", () => {
    const buffer = new LogBuffer();
    buffer.append([line(1, "a"), line(2, "b")]);
    buffer.clear();
    buffer.append([line(1, "c")]);
    expect(buffer.first).toBe(2);
    expect(buffer.text(2)).toBe("c");
  });
});
