// @vitest-environment node
// CTL-15 and the conveniences of CLI and SDK, in the form.
import { describe, expect, test } from "vitest";
import { amount, shortages, uneven } from "./demand";
import { at, type JsonObject, listAt, withAt } from "./json";
import * as mpijob from "./mpijob";
import { copied, forRuntime, fromTemplate, nameOfCopy, withoutCode } from "./newJob";
import {
  claims,
  type Role,
  selectors,
  sharedMemory,
  withNewClaim,
  withoutVolume,
  withSelector,
  withSharedMemory,
} from "./pods";
import { withoutSecrets } from "./secrets";
import * as trainjob from "./trainjob";

const made = (): JsonObject => fromTemplate("gpu", "default", "example.com/i:1");
const words = (job: JsonObject) => at(job, mpijob.COMMAND);

test("a new job has what CTL-15 says of it", () => {
  const job = made();
  expect(at(job, ["spec", "runPolicy", "cleanPodPolicy"])).toBe("Running");
  expect(words(job)).toEqual(["mpirun", "-n", "2", "python", "train.py"]);
  expect(mpijob.command(job)).toMatchObject({ line: "python train.py", wrapped: true });
});

test("ranks follow workers and slots, slots follow GPUs", () => {
  let job = mpijob.withWorkers(made(), 4);
  expect(words(job)).toEqual(["mpirun", "-n", "4", "python", "train.py"]);
  job = mpijob.withGpus(job, mpijob.NVIDIA, 2);
  expect(mpijob.slots(job)).toBe(2);
  expect(words(job)).toEqual(["mpirun", "-n", "8", "python", "train.py"]);
  job = mpijob.withSlots(job, 1);
  job = mpijob.withGpus(job, mpijob.NVIDIA, 4);
  expect(mpijob.slots(job)).toBe(1);
  job = mpijob.withLauncherAsWorker(job, true);
  expect(listAt(job, mpijob.COMMAND)[2]).toBe("5");
});

test("a command of the user's own that starts ranks stays as it is", () => {
  const typed = mpijob.withCommand(made(), "mpirun -n 3 ./a", true);
  if (!typed.ok) throw new Error();
  expect(words(mpijob.withWorkers(typed.manifest, 9))).toEqual(["mpirun", "-n", "3", "./a"]);
  expect(mpijob.command(typed.manifest)).toMatchObject({ wrapped: false, startsRanks: true });
});

test("a dollar of the command reaches the program", () => {
  const typed = mpijob.withCommand(made(), "sh -c 'echo $HOME'", true);
  if (!typed.ok) throw new Error();
  expect(listAt(typed.manifest, mpijob.COMMAND).at(-1)).toBe("echo $$HOME");
  expect(mpijob.command(typed.manifest).line).toBe("sh -c 'echo $HOME'");
});

test("a command in Kubernetes' own words is edited in them", () => {
  const job = withAt(made(), mpijob.COMMAND, ["sh", "-c", "echo $(NAME)"]) as JsonObject;
  expect(mpijob.command(job)).toMatchObject({ raw: true, line: "sh -c 'echo $(NAME)'" });
  const typed = mpijob.withCommand(job, "sh -c 'echo $(OTHER)'", false);
  expect(typed.ok && words(typed.manifest)).toEqual(["sh", "-c", "echo $(OTHER)"]);
});

test("an open quotation changes nothing", () => {
  expect(mpijob.withCommand(made(), "sh -c 'echo", true)).toEqual({ ok: false, fault: "quote" });
});

test("a queue is a label, as Kueue reads it", () => {
  const job = mpijob.withQueue(made(), "team");
  expect(at(job, ["metadata", "labels", mpijob.QUEUE_LABEL])).toBe("team");
  expect(mpijob.withQueue(job, "")).toEqual(made());
});

test("shared memory is a volume of its own, and leaves without a trace", () => {
  const job = made();
  const roles = mpijob.roles(job);
  const large = withSharedMemory(job, roles, "8Gi");
  expect(sharedMemory(large, roles)).toBe("8Gi");
  expect(claims(large, roles)).toEqual([]);
  expect(withSharedMemory(large, roles, "")).toEqual(job);
});

describe("a copy", () => {
  const original = {
    ...made(),
    metadata: {
      name: "train",
      namespace: "default",
      uid: "u",
      resourceVersion: "9",
      labels: { team: "a" },
      annotations: { "mpi-trainer.opendatahub.io/record": "x", own: "kept" },
    },
    status: { conditions: [] },
  };

  test("has nothing that servers and controllers wrote", () => {
    const copy = copied(original, "other", "space");
    expect(copy.metadata).toEqual({
      name: "other",
      namespace: "space",
      labels: { team: "a" },
      annotations: { own: "kept" },
    });
    expect(copy.status).toBeUndefined();
    expect(copy.spec).toEqual(made().spec);
  });

  test("has a name that counts", () => {
    expect(nameOfCopy("train")).toBe("train-copy");
    expect(nameOfCopy("train-copy")).toBe("train-copy-2");
    expect(nameOfCopy("train-copy-2")).toBe("train-copy-3");
    expect(nameOfCopy("a".repeat(60)).length).toBeLessThanOrEqual(48);
  });

  test("leaves behind the code that belongs to the original", () => {
    const roles = mpijob.roles(made());
    let job: JsonObject = withAt(made(), ["metadata", "annotations"], {
      "mpi-trainer.opendatahub.io/code": "train-code-1",
    }) as JsonObject;
    for (const role of roles) {
      job = withAt(
        job,
        [...role.pod, "volumes"],
        [{ name: "mpi-code" }, { name: "mpi-work" }],
      ) as JsonObject;
      job = withAt(job, [...role.pod, "initContainers"], [{ name: "mpi-unpack" }]) as JsonObject;
      job = withAt(job, [...role.container, "volumeMounts"], [{ name: "mpi-work" }]) as JsonObject;
      job = withAt(job, [...role.container, "workingDir"], "/mpi-work") as JsonObject;
    }
    expect(withoutCode(job)).toEqual({ manifest: made(), had: true });
    expect(withoutCode(made()).had).toBe(false);
  });
});

describe("a TrainJob", () => {
  const runtime = (name: string, framework: string): trainjob.Runtime => {
    const pod = { containers: [{ name: "node", image: "runtime:1" }] };
    const job = (part: string) => ({ name: part, template: { spec: { template: { spec: pod } } } });
    return {
      name,
      kind: "ClusterTrainingRuntime",
      framework,
      numNodes: 1,
      manifest: {
        spec: {
          mlPolicy: { numNodes: 1, [framework]: { numProcPerNode: 2 } },
          template: { spec: { replicatedJobs: [job("launcher"), job("node")] } },
        },
      },
    };
  };
  const mpi = runtime("a", "mpi");
  const torch = runtime("b", "torch");

  test("of an MPI runtime gets mpirun, of another none, also when the runtime changes", () => {
    const job = forRuntime(mpi, "default");
    const typed = trainjob.withCommand(job, mpi, "python train.py", true);
    if (!typed.ok) throw new Error();
    expect(at(typed.manifest, trainjob.COMMAND)).toEqual([
      "mpirun",
      "-n",
      "4",
      "python",
      "train.py",
    ]);
    const more = trainjob.withCount(typed.manifest, trainjob.NODES, 3, mpi);
    expect(at(more, trainjob.COMMAND)).toEqual(["mpirun", "-n", "6", "python", "train.py"]);
    const other = trainjob.withRuntime(more, mpi, torch);
    expect(at(other, trainjob.COMMAND)).toEqual(["python", "train.py"]);
    expect(trainjob.withCommand(job, torch, "python x", true)).toMatchObject({ ok: true });
  });

  test("says volumes and nodes in a patch of the form's own, which leaves with its content", () => {
    const job = forRuntime(mpi, "default");
    const patched = trainjob.withPods(job, mpi, (made, roles) =>
      withSelector(
        withNewClaim(made, roles, { claim: "data", path: "/data", readOnly: false }),
        roles,
        null,
        { key: "zone", value: "a" },
      ),
    );
    expect(trainjob.inPods(patched, mpi, claims)).toMatchObject([
      { claim: "data", roles: ["launcher", "node"] },
    ]);
    expect(at(patched, ["spec", "runtimePatches", 0, "manager"])).toBe(trainjob.MANAGER);
    const [label] = trainjob.inPods(patched, mpi, selectors);
    const back = trainjob.withPods(patched, mpi, (made, roles) => {
      const [row] = claims(made, roles);
      const less = withSelector(made, roles, label ?? null, null);
      return row ? withoutVolumeOf(less, roles, row.volume) : less;
    });
    expect(back).toEqual(job);
  });
});

const withoutVolumeOf = (job: JsonObject, roles: readonly Role[], name: string) =>
  withoutVolume(
    job,
    roles,
    name,
    roles.map((role) => role.name),
  );

describe("quota in numbers", () => {
  const quota = { name: "team", resource: "requests.nvidia.com/gpu", hard: "6", used: "2" };

  test("says what is asked, what is left, and what would fit", () => {
    const job = mpijob.withGpus(mpijob.withWorkers(made(), 4), mpijob.NVIDIA, 2);
    expect(shortages(job, [quota])).toMatchObject([
      { asked: 8, hard: 6, used: 2, left: 4, fitting: 2 },
    ]);
  });

  test("says nothing of a job that waits in a queue, or that fits", () => {
    const job = mpijob.withGpus(mpijob.withWorkers(made(), 4), mpijob.NVIDIA, 2);
    expect(shortages(mpijob.withQueue(job, "q"), [quota])).toEqual([]);
    expect(shortages(made(), [quota])).toEqual([]);
  });

  test.each([
    ["500m", 0.5],
    ["1Gi", 1024 ** 3],
    ["2k", 2000],
    ["1e3", 1000],
    ["1.5", 1.5],
    ["x", null],
    ["", null],
  ])("%s", (text, value) => {
    expect(amount(text)).toBe(value);
  });

  test("slots and GPUs that differ are told", () => {
    expect(uneven(mpijob.withSlots(made(), 3))).toEqual({ gpus: 1, slots: 3 });
    expect(uneven(made())).toBeNull();
  });
});

describe("what is kept in the browser has no secrets", () => {
  test.each([
    { name: "API_TOKEN", value: "abc" },
    { name: "X", value: "ghp_0123456789abcdef" },
    { name: "URL", value: "https://me:hunter2@example.com/x" },
    { name: "KEY", value: "-----BEGIN RSA PRIVATE KEY-----\nx" },
    { name: "LINE", value: "run --password hunter2" },
  ])("$name", (variable) => {
    const kept = withoutSecrets({ env: [variable] });
    expect(kept.left).toBe(1);
    expect(JSON.stringify(kept.manifest)).not.toContain(variable.value);
  });

  test("and all else", () => {
    const job = made();
    expect(withoutSecrets(job)).toEqual({ manifest: job, left: 0 });
    const ref = { env: [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] };
    expect(withoutSecrets(ref)).toEqual({ manifest: ref, left: 0 });
    const run = { command: "train --tokenizer bpe.json" };
    const tokenizers = { env: [{ name: "TOKENIZERS_PARALLELISM", value: "false" }], run };
    expect(withoutSecrets(tokenizers)).toEqual({ manifest: tokenizers, left: 0 });
  });
});
