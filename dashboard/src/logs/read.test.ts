import { describe, expect, it } from "vitest";
import { barSketch, clean } from "./clean";
import { level } from "./level";
import type { SentLine } from "./line";
import { parseRanks } from "./ranks";
import { unseen } from "./read";
import { LogStore } from "./store";

describe("text for terminals", () => {
  it("loses its colours, titles and links", () => {
    expect(clean("\u001b[1;31mred\u001b[0m plain")).toBe("red plain");
    expect(clean("\u001b]0;title\u0007text")).toBe("text");
    expect(clean("\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\")).toBe("link");
    expect(clean("a\u0000b\u0008c\td")).toBe("abc\td");
  });

  it("that was drawn over itself is what was left standing", () => {
    expect(clean("10%\r20%\r30%")).toBe("30%");
    expect(clean("30%\r")).toBe("30%");
    expect(clean("\r\r")).toBe("");
  });

  it("takes time in proportion to its length", () => {
    const began = performance.now();
    clean("\u001b[".repeat(500_000));
    clean("\u001b]".repeat(500_000));
    clean("\r".repeat(1_000_000));
    barSketch("1".repeat(1_000_000));
    level("a.".repeat(500_000));
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe("levels", () => {
  it("are those of the server", () => {
    expect(level("2026-01-01 ERROR x")).toBe(3);
    expect(level("[warning] x")).toBe(2);
    expect(level('{"level": "info"}')).toBe(1);
    expect(level("Traceback (most recent call last):")).toBe(3);
    expect(level("torch.cuda.OutOfMemoryError: no")).toBe(3);
    expect(level("an error in a sentence")).toBe(255);
  });
});

describe("ranks", () => {
  it("are numbers and ranges", () => {
    expect([...(parseRanks("0-2, 7") ?? [])]).toEqual([0, 1, 2, 7]);
    expect(parseRanks("")?.size).toBe(0);
    for (const wrong of ["a", "3-1", "1-", "99999999", "-1"]) expect(parseRanks(wrong)).toBeNull();
  });
});

function sent(at: number, text: string, rank = 0): SentLine {
  const time = new Date(at).toISOString();
  return { time, pod: "l", stream: "stdout", rank, text, attempt: 1, lost: 0, notes: [] };
}

describe("a connection that was lost", () => {
  const lines = Array.from({ length: 50 }, (_, at) => sent(Math.floor(at / 3), `line ${at % 2}`));

  it("loses nothing and doubles nothing, wherever the next answer begins", () => {
    for (let known = 1; known < 50; known += 7) {
      for (let begin = 0; begin <= known; begin += 5) {
        const store = new LogStore();
        store.add({ items: lines.slice(0, known) });
        store.interrupted();
        store.add({ items: lines.slice(begin) });
        const found: string[] = [];
        for (let at = 0; at < store.buffer.end; at += 1) found.push(store.buffer.text(at));
        expect(found).toEqual(lines.map((one) => one.text));
      }
    }
  });

  it("keeps a line twice that the program wrote twice", () => {
    const twice = [sent(1, "same"), sent(1, "same"), sent(2, "next")];
    expect(unseen(twice.slice(0, 1), twice)).toEqual(twice.slice(1));
  });

  it("says that the server passed lines over", () => {
    const store = new LogStore();
    store.add({ items: [sent(1, "a")] });
    store.add({ items: [sent(9, "z")], skipped: 70 });
    expect(store.buffer.text(1)).toContain("70 lines were skipped");
    expect(store.buffer.get(1)?.note).toBe(true);
  });

  it("earlier lines are put before those that are here", () => {
    const store = new LogStore();
    store.add({ items: lines.slice(30) });
    store.prepend(lines.slice(0, 33), false);
    expect(store.buffer.size).toBe(50);
    expect(store.older).toBe(false);
  });
});
