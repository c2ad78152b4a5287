import { expect, test } from "vitest";
import type { Overview } from "../api/types";
import { figures } from "./Figures";

const NOTHING: Overview = {
  hours: 168,
  total: 0,
  states: {},
  succeeded: 0,
  failed: 0,
  successRate: null,
  averageSeconds: null,
  gpusInUse: 0,
  cpusInUse: null,
  gpuHours: 0,
  running: [],
  waiting: [],
  failedLately: [],
  projects: [],
  notes: [],
};

const value = (overview: Overview, label: string) =>
  figures(overview, 168).find((one) => one.label === label)?.value;

test("what is not known is a dash and never a zero", () => {
  expect(value(NOTHING, "Success rate")).toBe("–");
  expect(value(NOTHING, "Average duration")).toBe("–");
  expect(value(NOTHING, "CPUs in use")).toBe("–");
});

test("a rate short of all is never shown as 100 %", () => {
  expect(value({ ...NOTHING, successRate: 0.999 }, "Success rate")).toBe("99%");
  expect(value({ ...NOTHING, successRate: 4 / 6 }, "Success rate")).toBe("67%");
  expect(value({ ...NOTHING, successRate: 1 }, "Success rate")).toBe("100%");
});
