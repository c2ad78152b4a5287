import { describe, expect, it } from "vitest";
import { LogBuffer } from "./buffer";
import { EVERYTHING, FilteredLines, type LineFilter, type Matches, Numbers } from "./filter";
import type { SentLine } from "./line";
import { LineReader } from "./read";

const reader = () => new LineReader({ lost: (lines) => `${lines} lost` });

function sent(second: number, text: string, more: Partial<SentLine> = {}): SentLine {
  const time = new Date(second * 1000).toISOString();
  return {
    time,
    pod: "l",
    stream: "stdout",
    rank: 0,
    text,
    attempt: 1,
    lost: 0,
    notes: [],
    ...more,
  };
}

async function shown(
  lines: readonly SentLine[],
  filter: Partial<LineFilter>,
  matches: Matches | null = null,
): Promise<string[]> {
  const buffer = new LogBuffer();
  buffer.append(reader().read(lines));
  const filtered = new FilteredLines(buffer, { ...EVERYTHING, ...filter }, matches);
  while (await filtered.step(5));
  return Array.from({ length: filtered.size }, (_, at) => buffer.text(filtered.number(at)));
}

describe("filters", () => {
  const lines = [
    sent(1, "starting", { rank: null }),
    sent(2, "INFO step 1", { rank: 0 }),
    sent(3, "WARNING slow", { rank: 1, pod: "w-1" }),
    sent(4, "ERROR lost", { rank: 2, attempt: 2 }),
    sent(5, "  at line 3", { rank: 2, attempt: 2 }),
  ];

  it("take lines by rank, pod, attempt, level, time and text", async () => {
    expect(await shown(lines, { ranks: new Set([0, 1]) })).toEqual(["INFO step 1", "WARNING slow"]);
    expect(await shown(lines, { pod: "w-1" })).toEqual(["WARNING slow"]);
    expect(await shown(lines, { attempt: 2 })).toEqual(["ERROR lost", "  at line 3"]);
    expect(await shown(lines, { least: 2 })).toEqual(["WARNING slow", "ERROR lost", "  at line 3"]);
    expect(await shown(lines, { from: 2000, until: 3000 })).toEqual([
      "INFO step 1",
      "WARNING slow",
    ]);
    expect(await shown(lines, { text: "STEP" })).toEqual(["INFO step 1"]);
  });

  it("never hide that lines are missing", async () => {
    const gap = [...lines, sent(6, "x", { lost: 4, notes: ["attempt 2 begins"] })];
    expect(await shown(gap, { text: "slow" })).toEqual([
      "WARNING slow",
      "4 lost",
      "attempt 2 begins",
    ]);
  });

  it("show the last drawing of a progress bar, of each rank", async () => {
    const bars = [
      sent(1, " 10%|#         | 1/10", { rank: 0 }),
      sent(2, " 10%|#         | 1/10", { rank: 1 }),
      sent(3, " 20%|##        | 2/10", { rank: 0 }),
      sent(4, " 20%|##        | 2/10", { rank: 1 }),
      sent(5, "epoch done", { rank: 0 }),
      sent(6, " 10%|#         | 1/10", { rank: 0 }),
    ];
    expect(await shown(bars, { bars: true })).toEqual([
      " 20%|##        | 2/10",
      " 20%|##        | 2/10",
      "epoch done",
      " 10%|#         | 1/10",
    ]);
    expect(await shown(bars, { bars: false })).toHaveLength(6);
  });

  it("ask a Worker about expressions, and about nothing that another filter refuses", async () => {
    const asked: string[] = [];
    const matches: Matches = {
      test: async (texts) => {
        asked.push(...texts);
        return texts.map((text) => /l[oO]/.test(text));
      },
    };
    const found = await shown(lines, { least: 2, text: "l[oO]", expression: true }, matches);
    expect(found).toEqual(["WARNING slow", "ERROR lost"]);
    expect(asked).not.toContain("starting");
  });

  it("look again at lines that came late", async () => {
    const buffer = new LogBuffer();
    const read = reader();
    buffer.append(read.read([sent(1, "a x"), sent(5, "b x")]));
    const filtered = new FilteredLines(buffer, { ...EVERYTHING, text: "x" });
    await filtered.step(50);
    filtered.changed(buffer.append(read.read([sent(3, "late x")])));
    await filtered.step(50);
    const texts = [0, 1, 2].map((at) => buffer.text(filtered.number(at)));
    expect(texts).toEqual(["a x", "late x", "b x"]);
  });
});

describe("numbers of lines", () => {
  it("are cut at both ends and taken out of the middle", () => {
    const numbers = new Numbers();
    for (let number = 0; number < 5000; number += 1) numbers.push(number * 2);
    numbers.cutBefore(100);
    numbers.cutFrom(200);
    numbers.remove(150);
    expect(numbers.size).toBe(49);
    expect(numbers.at(0)).toBe(100);
    expect(numbers.indexOf(151)).toBe(25);
    expect(numbers.at(25)).toBe(152);
  });
});
