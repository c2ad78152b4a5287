import { expect, test } from "vitest";
import type { JobItem, JobList, Overview } from "../api/types";
import { snapshotOf } from "./snapshot";

const job = (uid: string, resourceVersion: string, state = "Running") =>
  ({ uid, resourceVersion, state }) as JobItem;
const list = (items: JobItem[], total: number) => ({ items, total }) as JobList;
const glance = (overview: Partial<Overview>) =>
  ({ running: [], waiting: [], failedLately: [], ...overview }) as Overview;
const now = snapshotOf([job("a", "1"), job("b", "7"), job("c", "3", "Created")]);

test("a page whose rows are as the stream has them need not be read again", () => {
  expect(now.agreesWith(list([job("b", "7"), job("a", "1")], 3), false)).toBe(true);
});

test("a page is read again after a change, a new job, and a job that is gone", () => {
  expect(now.agreesWith(list([job("b", "6")], 3), false)).toBe(false);
  expect(now.agreesWith(list([job("b", "7")], 2), false)).toBe(false);
  expect(now.agreesWith(list([job("gone", "1")], 3), false)).toBe(false);
});

test("a filtered page is read again", () => {
  expect(now.agreesWith(list([job("a", "1")], 3), true)).toBe(false);
});

test("an overview agrees by its counts and by the jobs that it names", () => {
  const states = { Running: 2, Created: 1 };
  expect(now.agreesWithGlance(glance({ total: 3, states, running: [job("a", "1")] }))).toBe(true);
  expect(now.agreesWithGlance(glance({ total: 3, states, running: [job("a", "0")] }))).toBe(false);
  expect(now.agreesWithGlance(glance({ total: 3, states: { Running: 3 } }))).toBe(false);
});
