// @vitest-environment node
import { expect, test } from "vitest";
import type { JobItem } from "../api/types";
import { waiting } from "./waiting";

const job = (name: string, queue: string, created: string, state = "Created") =>
  ({ name, queue, created, state }) as JobItem;

test("who waits longer is before who came later, in each queue", () => {
  const jobs = [
    job("late", "a", "2026-01-02T00:00:00Z"),
    job("early", "a", "2026-01-01T00:00:00Z", "Suspended"),
    job("other", "b", "2026-01-01T00:00:00Z"),
    job("runs", "a", "2026-01-01T00:00:00Z", "Running"),
    job("free", "", "2026-01-01T00:00:00Z"),
  ];
  expect(waiting(jobs).map((one) => [one.queue, one.jobs.map((each) => each.name)])).toEqual([
    ["a", ["early", "late"]],
    ["b", ["other"]],
  ]);
});
