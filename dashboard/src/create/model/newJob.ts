/** A job to begin with: from a template, for a runtime, or like one that was read. Pure. */

import {
  at,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  objectAt,
  type Path,
  withAt,
  withoutAt,
} from "./json";
import { mpiCommand } from "./mpiCommand";
import * as mpijob from "./mpijob";
import * as trainjob from "./trainjob";
import { literal } from "./words";

/** What stands for no image at all: jobs of this machine need none. */
export const LOCAL_IMAGE = "local";

export type TemplateName = "hello" | "gpu" | "intel" | "empty";

interface Words {
  readonly name: string;
  readonly workers: number;
  readonly slots: number;
  readonly gpus: number;
  readonly implementation: string;
  readonly command: readonly string[];
}

const TEMPLATES: Record<TemplateName, Words> = {
  hello: {
    name: "hello",
    workers: 2,
    slots: 1,
    gpus: 0,
    implementation: "OpenMPI",
    command: ["sh", "-c", 'echo "hello from $(hostname)"'],
  },
  gpu: {
    name: "train",
    workers: 2,
    slots: 1,
    gpus: 1,
    implementation: "OpenMPI",
    command: ["python", "train.py"],
  },
  intel: {
    name: "imb",
    workers: 2,
    slots: 4,
    gpus: 0,
    implementation: "Intel",
    command: ["IMB-MPI1", "Allreduce"],
  },
  empty: {
    name: "",
    workers: 2,
    slots: 1,
    gpus: 0,
    implementation: "OpenMPI",
    command: [],
  },
};

/** As `odh mpijob create` makes it: tried once, and its pods go when it has ended. */
export function fromTemplate(template: TemplateName, namespace: string, image: string): JsonObject {
  const words = TEMPLATES[template];
  const command: JsonObject =
    words.command.length > 0
      ? { command: mpiCommand(words.command.map(literal), words.workers * words.slots) }
      : {};
  const needs: JsonObject = { [mpijob.NVIDIA]: words.gpus };
  const resources: JsonObject =
    words.gpus > 0 ? { resources: { requests: needs, limits: { ...needs } } } : {};
  return {
    apiVersion: mpijob.API_VERSION,
    kind: mpijob.KIND,
    metadata: { name: words.name, namespace },
    spec: {
      slotsPerWorker: words.slots,
      mpiImplementation: words.implementation,
      runPolicy: { cleanPodPolicy: "Running", backoffLimit: 0 },
      mpiReplicaSpecs: {
        Launcher: {
          replicas: 1,
          template: { spec: { containers: [{ name: "mpi", image, ...command }] } },
        },
        Worker: {
          replicas: words.workers,
          template: { spec: { containers: [{ name: "mpi", image, ...resources }] } },
        },
      },
    },
  };
}

/** A TrainJob that leaves all to its runtime but the command. */
export function forRuntime(runtime: trainjob.Runtime, namespace: string): JsonObject {
  const nodes = Math.max(runtime.numNodes, runtime.framework === "plain" ? 1 : 2);
  const kind: JsonObject = runtime.kind === "TrainingRuntime" ? { kind: runtime.kind } : {};
  return {
    apiVersion: trainjob.API_VERSION,
    kind: trainjob.KIND,
    metadata: { name: "", namespace },
    spec: {
      runtimeRef: { name: runtime.name, ...kind },
      trainer: { numNodes: nodes },
    },
  };
}

const NOTES_OF_ONE_JOB = new Set(
  [
    "record",
    "attempts",
    "phase",
    "start-time",
    "completion-time",
    "cause",
    "placement",
    "restarts",
  ].map((name) => `${mpijob.DOMAIN}/${name}`),
).add("kubectl.kubernetes.io/last-applied-configuration");

/** Code that was shipped with the original stays behind: only the server can copy it. */
export const CODE = `${mpijob.DOMAIN}/code`;

/** The object as a new one, under another name: without what servers and controllers wrote. */
export function copied(manifest: JsonObject, name: string, namespace: string): JsonObject {
  const meta = objectAt(manifest, ["metadata"]);
  const notes = Object.entries(objectAt(meta, ["annotations"])).filter(
    ([key]) => !NOTES_OF_ONE_JOB.has(key),
  );
  const labels = objectAt(meta, ["labels"]);
  const kept: JsonObject = {
    name,
    namespace,
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(notes.length > 0 ? { annotations: Object.fromEntries(notes) } : {}),
  };
  let made: Json = withoutAt(manifest, ["status"]);
  made = withAt(made, ["metadata"], kept);
  made = withoutAt(made, ["spec", "runPolicy", "suspend"]);
  made = withoutAt(made, ["spec", "suspend"]);
  const patches = objectAt(made, ["spec"]).runtimePatches;
  if (Array.isArray(patches)) {
    // Others, such as Kueue, patch the job that they see, not its copy.
    const own = patches.filter(
      (one) => !(isObject(one) && String(one.manager).startsWith("kueue")),
    );
    made =
      own.length > 0
        ? withAt(made, ["spec", "runtimePatches"], own)
        : withoutAt(made, ["spec", "runtimePatches"]);
  }
  return made as JsonObject;
}

/** `train-copy`, `train-copy-2`, … within what a name may have. */
export function nameOfCopy(name: string): string {
  const [, stem = name, , count] = /^(.*?)(-copy(?:-(\d{1,3}))?)?$/.exec(name) ?? [];
  const end = name === stem ? "-copy" : `-copy-${String(Number(count ?? "1") + 1)}`;
  return `${stem.slice(0, 40).replace(/[-.]+$/, "")}${end}`;
}

const CODE_VOLUMES = ["mpi-code", "mpi-work"];

/** Without the code that was shipped with the original: it belongs to that job alone. */
export function withoutCode(manifest: JsonObject): { manifest: JsonObject; had: boolean } {
  const notes = ["metadata", "annotations", CODE];
  if (at(manifest, notes) === undefined) {
    return { manifest, had: false };
  }
  let made: Json = withoutAt(manifest, notes);
  for (const role of mpijob.roles(manifest)) {
    made = kept(made, [...role.pod, "volumes"], CODE_VOLUMES);
    made = kept(made, [...role.pod, "initContainers"], ["mpi-unpack"]);
    made = kept(made, [...role.container, "volumeMounts"], CODE_VOLUMES);
    if (at(made, [...role.container, "workingDir"]) === "/mpi-work") {
      made = withoutAt(made, [...role.container, "workingDir"]);
    }
  }
  return { manifest: made as JsonObject, had: true };
}

/** The list at the path without the entries of these names; no list where none is left. */
function kept(value: Json, path: Path, names: readonly string[]): Json {
  const list = listAt(value, path);
  const left = list.filter((one) => !(isObject(one) && names.includes(String(one.name))));
  if (left.length === list.length) {
    return value;
  }
  return left.length > 0 ? withAt(value, path, left) : withoutAt(value, path);
}
