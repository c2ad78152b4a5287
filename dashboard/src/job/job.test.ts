import { describe, expect, it } from "vitest";
import type { Event, Job, JobStatus } from "../api/types";
import { differences, flattened } from "../compare/difference";
import { overlay } from "../compare/overlay";
import { asWritten } from "./configuration/manifest";
import { straggler } from "./metrics/straggler";
import type { Series } from "./metrics/usage";
import { extent, phases } from "./overview/timeline";
import { pointless, sentence, suspicion } from "./situation";
import { counted, rankMap } from "./workers/rankMap";

const NOW = Date.parse("2026-01-01T00:01:00Z");
const at = (second: number) =>
  new Date(Date.parse("2026-01-01T00:00:00Z") + second * 1000).toISOString();

function job(more: Partial<Job> = {}): Job {
  return {
    kind: "MPIJob",
    namespace: "default",
    name: "train",
    uid: "u",
    state: "Running",
    reason: "",
    message: "",
    suspend: false,
    workers: 2,
    slots: 2,
    implementation: "OpenMPI",
    image: "image",
    command: ["mpirun", "train"],
    created: at(0),
    started: at(10),
    completed: null,
    deleted: null,
    manifest: {},
    ...more,
  };
}

function status(more: Partial<JobStatus> = {}): JobStatus {
  const none = { wanted: 1, active: 0, succeeded: 0, failed: 0 };
  return {
    kind: "MPIJob",
    namespace: "default",
    name: "train",
    state: "Running",
    reason: "",
    message: "",
    started: at(10),
    completed: null,
    launcher: none,
    workers: none,
    conditions: [],
    pods: [],
    ranks: [],
    attempts: [],
    progress: null,
    waitsFor: "",
    missing: "",
    ...more,
  };
}

const runs = (second: number): Event => ({
  time: at(second),
  type: "Normal",
  reason: "MPIJobRunning",
  message: "",
});

function attempt(number: number, began: number, ended: number) {
  return {
    attempt: number,
    reason: "LauncherPodFailed",
    message: "",
    began: at(began),
    ended: at(ended),
    rank: 3,
    host: "w-3",
  };
}

describe("what is happening now", () => {
  it("is one sentence for every state", () => {
    expect(sentence(job(), status(), NOW)).toContain("50s with 4 ranks on 2 workers; its output");
    expect(sentence(job(), null, NOW)).toContain("50s with 4 ranks on 2 workers.");
    const progress = {
      step: 3,
      total: 10,
      unit: "epoch",
      fraction: 0.3,
      etaSeconds: 90,
      metrics: {},
    };
    expect(sentence(job(), status({ progress }), NOW)).toBe(
      "It is at epoch 3 of 10, about 1m 30s are left.",
    );
    const waiting = job({ state: "Created", started: null });
    expect(sentence(waiting, status({ waitsFor: "no node has 8 GPUs" }), NOW)).toContain(
      "no node has 8",
    );
    expect(sentence(job({ state: "Suspended", suspend: true }), null, NOW)).toContain("resumes it");
    const failed = job({ state: "Failed", completed: at(20) });
    expect(sentence(failed, status({ attempts: [attempt(1, 10, 20)] }), NOW)).toBe(
      "It failed after 10s; the first to fail was rank 3 on w-3.",
    );
  });

  it("says that a job seems to be stuck where its condition does", () => {
    const condition = {
      type: "Running",
      status: "True",
      reason: "x",
      message: "it runs; seems to be stuck: rank 1 waits",
      lastUpdateTime: null,
      lastTransitionTime: null,
    };
    expect(suspicion(status({ conditions: [condition] }))).toBe("seems to be stuck: rank 1 waits");
    expect(suspicion(status())).toBe("");
  });

  it("says why an action makes no sense", () => {
    expect(pointless("suspend", job())).toBe("");
    expect(pointless("resume", job())).not.toBe("");
    expect(pointless("suspend", job({ state: "Failed" }))).not.toBe("");
    expect(pointless("delete", job({ state: "Failed" }))).toBe("");
    expect(pointless("delete", job({ deleted: at(5) }))).not.toBe("");
  });
});

describe("a time line", () => {
  const names = (found: ReturnType<typeof phases>) => found.map((one) => [one.name, one.state]);

  it("goes from submission to the end", () => {
    const done = job({ state: "Succeeded", completed: at(40) });
    const found = phases(done, status(), [runs(15)]);
    expect(names(found)).toEqual([
      ["Submitted", "done"],
      ["Waiting to start", "done"],
      ["Workers starting", "done"],
      ["Running", "done"],
    ]);
    expect(found.at(-1)?.to).toBe(Date.parse(at(40)));
    expect(extent(found[3] as never, found, NOW)).toEqual([37.5, 62.5]);
  });

  it("has a part for each attempt", () => {
    const again = status({ attempts: [attempt(1, 10, 20)] });
    expect(names(phases(job(), again, [runs(12), runs(25)]))).toEqual([
      ["Submitted", "done"],
      ["Waiting to start", "done"],
      ["Attempt 1: Workers starting", "done"],
      ["Attempt 1: Running", "failed"],
      ["Attempt 2: Workers starting", "done"],
      ["Attempt 2: Running", "now"],
    ]);
  });

  it("names the queue and the initializers", () => {
    const manifest = {
      metadata: { labels: { "kueue.x-k8s.io/queue-name": "team-a" } },
      status: {
        jobsStatus: [
          { name: "dataset-initializer", succeeded: 1 },
          { name: "node", active: 1 },
        ],
      },
    };
    const found = phases(job({ state: "Created", started: null, manifest }), status(), []);
    expect(names(found)).toEqual([
      ["Submitted", "done"],
      ["In queue team-a", "now"],
      ["Dataset initializer", "done"],
    ]);
  });
});

describe("the rank map", () => {
  const rank = (number: number, exitCode: number | null, signal: number | null) => ({
    rank: number,
    pod: `train-worker-${Math.floor(number / 2)}`,
    address: "",
    end: exitCode === null && signal === null ? "" : `end ${number}`,
    exitCode,
    signal,
    reason: "",
  });

  it("tells the rank that failed from those that were ended because of it", () => {
    const nodes = rankMap(
      job(),
      status({
        ranks: [rank(0, null, 15), rank(1, null, 9), rank(2, null, null), rank(3, 1, null)],
      }),
    );
    const standing = nodes.flatMap((node) =>
      node.pods.flatMap((pod) => pod.ranks.map((one) => one.standing)),
    );
    expect(standing).toEqual(["ended", "ended", "running", "failed"]);
    expect(counted(nodes)).toEqual({ all: 4, failed: 1, ended: 2 });
  });

  it("takes a rank that was killed, and nobody else failed, for the one at fault", () => {
    const nodes = rankMap(job(), status({ ranks: [rank(0, null, 9), rank(1, null, 15)] }));
    expect(nodes[0]?.pods[0]?.ranks.map((one) => one.standing)).toEqual(["failed", "ended"]);
  });

  it("has room for ranks that are not known yet, launcher first", () => {
    const pod = (name: string, role: "launcher" | "worker", index: number, node: string) => ({
      name,
      role,
      index,
      phase: "Pending",
      ready: false,
      address: "",
      node,
      end: "",
      exitCode: null,
      signal: null,
      reason: "",
    });
    const nodes = rankMap(
      job(),
      status({
        pods: [
          pod("w-1", "worker", 1, "n1"),
          pod("w-0", "worker", 0, "n1"),
          pod("l", "launcher", 0, "n1"),
        ],
      }),
    );
    expect(nodes[0]?.pods.map((one) => one.name)).toEqual(["l", "w-0", "w-1"]);
    expect(nodes[0]?.pods[2]?.ranks.map((one) => one.rank)).toEqual([2, 3]);
  });
});

describe("comparing", () => {
  it("shows what differs first", () => {
    const rows = differences([
      { a: 1, env: [{ name: "LR", value: "1" }], same: "x" },
      { a: 2, env: [{ name: "LR", value: "2" }], same: "x" },
    ]);
    expect(rows.map((row) => [row.field, row.differs])).toEqual([
      ["a", true],
      ["env[LR].value", true],
      ["env[LR].name", false],
      ["same", false],
    ]);
    expect(flattened({ command: ["a", "b"] }).get("command")).toBe('["a","b"]');
  });

  it("lays metrics over one another from each job's beginning", () => {
    const series = (begin: number): Series[] => [
      {
        name: "loss",
        pod: "",
        rank: 0,
        unit: "",
        points: [
          [begin, 2],
          [begin + 5, 1],
        ],
      },
      { name: "loss", pod: "", rank: 1, unit: "", points: [[begin, 4]] },
    ];
    const [loss] = overlay([
      { job: "a", series: series(100) },
      { job: "b", series: series(900) },
    ]);
    expect(loss?.series.map((one) => one.points)).toEqual([
      [
        [0, 3],
        [5, 1],
      ],
      [
        [0, 3],
        [5, 1],
      ],
    ]);
  });
});

describe("a straggler", () => {
  const speed = (rank: number, value: number): Series => ({
    name: "throughput",
    pod: "",
    rank,
    unit: "",
    points: [[1, value]],
  });

  it("is a rank that is much slower than the others", () => {
    expect(straggler([speed(0, 100), speed(1, 98), speed(2, 60)])).toEqual({
      who: "2",
      percent: 39,
    });
    expect(straggler([speed(0, 100), speed(1, 98), speed(2, 97)])).toBeNull();
    expect(straggler([speed(0, 100), speed(1, 10)])).toBeNull();
  });

  it("is not the rank that needs the least time, or whose rate is no speed", () => {
    const named = (name: string) =>
      [1, 1, 0.5].map((value, rank) => ({ ...speed(rank, value), name }));
    for (const name of ["step_time", "sec_per_step", "rate", "learning_rate", "error_rate"]) {
      expect(straggler(named(name)), name).toBeNull();
    }
    for (const name of ["step", "tokens/s", "images_s", "steps_per_second", "samples_per_sec"]) {
      expect(straggler(named(name))?.who, name).toBe("2");
    }
  });
});

describe("a manifest as it was written", () => {
  it("has no status and nothing that the server added", () => {
    const manifest = {
      kind: "MPIJob",
      metadata: { name: "a", uid: "u", labels: { x: "y" } },
      status: {},
    };
    expect(asWritten(manifest)).toEqual({
      kind: "MPIJob",
      metadata: { name: "a", labels: { x: "y" } },
    });
  });
});
