import { describe, expect, it } from "vitest";
import {
  MOST_PIXELS,
  moved,
  physicalHeight,
  positionOf,
  ROW,
  rowAt,
  topOf,
  wholeHeight,
} from "./scroll";

const VIEW = 600;

describe("places of rows", () => {
  const opened = [
    { index: 3, extra: 100 },
    { index: 10, extra: 50 },
  ];

  it("count the rows that are opened", () => {
    expect(topOf(3, opened)).toBe(60);
    expect(topOf(4, opened)).toBe(180);
    expect(topOf(11, opened)).toBe(11 * ROW + 150);
    expect(wholeHeight(20, opened)).toBe(550);
    for (let index = 0; index < 20; index += 1) {
      expect(rowAt(topOf(index, opened), opened)).toBe(index);
      expect(rowAt(topOf(index + 1, opened) - 1, opened)).toBe(index);
    }
  });

  it("of a million rows are all reached, in an element that browsers can draw", () => {
    const whole = wholeHeight(1_000_000, []);
    const extent = { whole, view: VIEW };
    expect(physicalHeight(whole)).toBe(MOST_PIXELS);
    const end = moved({ place: 0, scrolled: 0 }, MOST_PIXELS - VIEW, extent);
    expect(end.place).toBe(whole - VIEW);
    expect(moved(end, 0, extent).place).toBe(0);
    const middle = positionOf(500_000 * ROW, extent);
    expect(middle.place).toBe(500_000 * ROW);
    expect(moved(middle, middle.scrolled + 100, extent).place).toBe(500_000 * ROW + 100);
    const jump = moved({ place: 0, scrolled: 0 }, MOST_PIXELS / 2, extent);
    expect(jump.place).toBeCloseTo(whole / 2, -4);
  });

  it("of a short list are those of the browser", () => {
    const extent = { whole: 2000, view: VIEW };
    expect(moved({ place: 0, scrolled: 0 }, 333, extent)).toEqual({ place: 333, scrolled: 333 });
    expect(positionOf(9999, extent)).toEqual({ place: 1400, scrolled: 1400 });
  });
});
