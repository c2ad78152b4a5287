import { expect, test } from "vitest";
import { ago, duration } from "./time";

test.each([
  [0, "0s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [200_000, "3m 20s"],
  [3_600_000, "1h"],
  [7_500_000, "2h 5m"],
  [86_400_000 * 3 + 3_600_000 * 4 + 59_000, "3d 4h"],
  [-5, "0s"],
])("%d ms are %s", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test.each([
  [0, "just now"],
  [1_000, "1 second ago"],
  [90_000, "1 minute ago"],
  [7_200_000, "2 hours ago"],
  [-60_000, "just now"],
])("%d ms back is %s", (ms, text) => {
  expect(ago(1e12 - ms, 1e12)).toBe(text);
});
