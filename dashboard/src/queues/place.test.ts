import { expect, test } from "vitest";
import type { Queue } from "../api/types";
import { placeOf, placeSentence, placeWords } from "./place";

const queue: Queue = {
  namespace: "team",
  name: "gpus",
  clusterQueue: "pool",
  pending: 5,
  admitted: 1,
  resources: null,
  clusterPending: 9,
  waiting: [
    { kind: "MPIJob", name: "mine", position: 2, clusterPosition: 4, priority: 0 },
    { kind: "TrainJob", name: "mine", position: 3, clusterPosition: 6, priority: 0 },
  ],
};

test("a job has its own place, and not that of another kind with its name", () => {
  const place = placeOf({ kind: "TrainJob", name: "mine" }, "gpus", [queue]);
  expect(place?.position).toBe(3);
  expect(placeWords(place)).toBe("3rd of 5");
});

test("the sentence tells the place in the project's queue and in the cluster's", () => {
  const place = placeOf({ kind: "MPIJob", name: "mine" }, "gpus", [queue]);
  expect(place && placeSentence(place)).toBe("2nd of 5 that wait in gpus, 4th in all of pool");
});

test("where places are closed to the caller it is told how many wait, and no place is made up", () => {
  const closed = { ...queue, waiting: null, clusterPending: null };
  const place = placeOf({ kind: "MPIJob", name: "mine" }, "gpus", [closed]);
  expect(placeWords(place)).toBe("");
  expect(place && placeSentence(place)).toBe("5 jobs wait in gpus");
});

test("a queue that is not there gives no place", () => {
  expect(placeOf({ kind: "MPIJob", name: "mine" }, "none", [queue])).toBeNull();
});
