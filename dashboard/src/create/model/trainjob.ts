/**
 * A TrainJob as the form shows and changes it, beside the runtime that it names. Pure.
 *
 * As with MPIJobs the object is the only truth. What pods need of nodes and volumes is no field of
 * a TrainJob: it goes into a runtime patch of the form's own, which leaves again with its content.
 */

import {
  at,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  objectAt,
  type Path,
  textAt,
  withAt,
  withoutAt,
} from "./json";
import { mpiCommand, wrapped } from "./mpiCommand";
import {
  type Changed,
  type Command,
  commandAt,
  DOMAIN,
  gpuKind,
  number,
  resource,
  strings,
  withCommandAt,
  withResource,
} from "./mpijob";
import type { Role } from "./pods";

export const KIND = "TrainJob";
export const API_VERSION = "trainer.kubeflow.org/v1alpha1";
export const MANAGER = `${DOMAIN}/dashboard`;
const ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step";

export const RUNTIME: Path = ["spec", "runtimeRef", "name"];
export const RUNTIME_KIND: Path = ["spec", "runtimeRef", "kind"];
export const TRAINER: Path = ["spec", "trainer"];
export const NODES: Path = [...TRAINER, "numNodes"];
export const PROCESSES: Path = [...TRAINER, "numProcPerNode"];
export const IMAGE: Path = [...TRAINER, "image"];
export const COMMAND: Path = [...TRAINER, "command"];
export const ARGS: Path = [...TRAINER, "args"];
export const DEADLINE: Path = ["spec", "activeDeadlineSeconds"];
export const TTL: Path = ["metadata", "annotations", `${DOMAIN}/ttl-seconds-after-finished`];
export const CLEAN: Path = ["metadata", "annotations", `${DOMAIN}/clean-pod-policy`];
export const TIMEOUT: Path = ["metadata", "annotations", `${DOMAIN}/schedule-timeout-seconds`];
/** `trainer.resourcesPerNode` has requests and limits as a container's `resources` has them. */
const RESOURCES: Path = [...TRAINER, "resourcesPerNode"];

/** What the form needs to know of a runtime. */
export interface Runtime {
  readonly name: string;
  readonly kind: string;
  readonly framework: string;
  readonly numNodes: number;
  readonly manifest: JsonObject;
}

export const isMpi = (runtime: Runtime | null): boolean => runtime?.framework === "mpi";

const POLICY: Path = ["spec", "mlPolicy"];

export function processesOf(runtime: Runtime | null): number {
  const policy = objectAt(runtime?.manifest, POLICY);
  return number(objectAt(policy, ["mpi"]), ["numProcPerNode"]) ?? 1;
}

export const implementationOf = (runtime: Runtime): string => {
  if (runtime.framework !== "mpi") {
    return "";
  }
  const noted = textAt(runtime.manifest, [
    "metadata",
    "annotations",
    `${DOMAIN}/mpi-implementation`,
  ]);
  return noted || textAt(runtime.manifest, [...POLICY, "mpi", "mpiImplementation"]) || "OpenMPI";
};

/** The image of the job's nodes, where the job names none. */
export function imageOf(runtime: Runtime | null): string {
  for (const job of jobsOf(runtime)) {
    const containers = listAt(job, ["template", "spec", "template", "spec", "containers"]);
    const image = textAt(containers[0], ["image"]);
    if (image) {
      return image;
    }
  }
  return "";
}

function jobsOf(runtime: Runtime | null): JsonObject[] {
  const path = ["spec", "template", "spec", "replicatedJobs"];
  return listAt(runtime?.manifest, path).filter(isObject);
}

/** The runtime's jobs that run the trainer: those marked so, and the nodes. */
function trainerJobs(runtime: Runtime | null): string[] {
  const found = jobsOf(runtime).filter((job) => {
    const step = textAt(job, ["template", "metadata", "labels", ANCESTOR]);
    return step === "trainer" || job.name === "node" || job.name === "launcher";
  });
  return found.map((job) => textAt(job, ["name"]));
}

function containerNames(runtime: Runtime | null, job: string): string {
  const found = jobsOf(runtime).find((one) => one.name === job);
  const containers = listAt(found, ["template", "spec", "template", "spec", "containers"]);
  const names = containers.map((one) => textAt(one, ["name"]));
  return names.includes("node") ? "node" : (names[0] ?? "node");
}

export const ranks = (manifest: JsonObject, runtime: Runtime | null): number =>
  (number(manifest, NODES) ?? runtime?.numNodes ?? 1) *
  (number(manifest, PROCESSES) ?? processesOf(runtime));

function followed(before: JsonObject, after: JsonObject, runtime: Runtime | null): JsonObject {
  const own = wrapped(strings(at(before, COMMAND)) ?? [], ranks(before, runtime));
  return own === null
    ? after
    : (withAt(after, COMMAND, mpiCommand(own, ranks(after, runtime))) as JsonObject);
}

export function withCount(
  manifest: JsonObject,
  path: Path,
  count: number | null,
  runtime: Runtime | null,
): JsonObject {
  const made = count === null ? withoutAt(manifest, path) : withAt(manifest, path, count);
  return followed(manifest, made as JsonObject, runtime);
}

export function withRuntime(manifest: JsonObject, old: Runtime | null, next: Runtime): JsonObject {
  let made: Json = withAt(manifest, RUNTIME, next.name);
  made =
    next.kind === "TrainingRuntime"
      ? withAt(made, RUNTIME_KIND, next.kind)
      : withoutAt(made, RUNTIME_KIND);
  const own = wrapped(strings(at(manifest, COMMAND)) ?? [], ranks(manifest, old));
  if (own !== null && isMpi(old)) {
    const words = isMpi(next) ? mpiCommand(own, ranks(made as JsonObject, next)) : own;
    made = withAt(made, COMMAND, words);
  }
  return made as JsonObject;
}

export const command = (manifest: JsonObject, runtime: Runtime | null): Command =>
  commandAt(manifest, COMMAND, ranks(manifest, runtime));

export function withCommand(
  manifest: JsonObject,
  runtime: Runtime | null,
  line: string,
  wrap: boolean,
): Changed {
  const { raw } = command(manifest, runtime);
  const given = { line, wrap: wrap && isMpi(runtime), raw };
  return withCommandAt(manifest, COMMAND, ranks(manifest, runtime), given);
}

/** `resource` and `withResource` of a container read from here. */
const within = (manifest: JsonObject): JsonObject => ({ resources: objectAt(manifest, RESOURCES) });

export const nodeResource = (manifest: JsonObject, name: string): string =>
  resource(within(manifest), [], name);

export const nodeGpuKind = (manifest: JsonObject): string => gpuKind(within(manifest), []);

export function withNodeResource(manifest: JsonObject, name: string, amount: string): JsonObject {
  const made = at(withResource(within(manifest), [], name, amount), ["resources"]);
  const next =
    made === undefined || Object.keys(objectAt(made, [])).length === 0
      ? withoutAt(manifest, RESOURCES)
      : withAt(manifest, RESOURCES, made);
  return next as JsonObject;
}

const PATCHES: Path = ["spec", "runtimePatches"];
const POD: Path = ["template", "spec", "template", "spec"];

/**
 * A change to the pods that a runtime makes for the job: `edit` gets a manifest in which the form's
 * patch has each of the trainer's jobs, and the roles there.
 */
export function withPods(
  manifest: JsonObject,
  runtime: Runtime | null,
  edit: (manifest: JsonObject, roles: readonly Role[]) => JsonObject,
): JsonObject {
  const { made, roles } = prepared(manifest, runtime);
  return tidied(edit(made, roles));
}

/** What `view` finds in those pods. */
export function inPods<T>(
  manifest: JsonObject,
  runtime: Runtime | null,
  view: (manifest: JsonObject, roles: readonly Role[]) => T,
): T {
  const { made, roles } = prepared(manifest, runtime);
  return view(made, roles);
}

function prepared(
  manifest: JsonObject,
  runtime: Runtime | null,
): { made: JsonObject; roles: Role[] } {
  const patches = listAt(manifest, PATCHES);
  const found = patches.findIndex((one) => isObject(one) && one.manager === MANAGER);
  const index = found < 0 ? patches.length : found;
  let made: Json = withAt(manifest, [...PATCHES, index, "manager"], MANAGER);
  const jobs = [...PATCHES, index, "trainingRuntimeSpec", "template", "spec", "replicatedJobs"];
  const roles: Role[] = [];
  for (const name of trainerJobs(runtime)) {
    const there = listAt(made, jobs).findIndex((one) => isObject(one) && one.name === name);
    const place = there < 0 ? listAt(made, jobs).length : there;
    made = withAt(made, [...jobs, place, "name"], name);
    const pod = [...jobs, place, ...POD];
    const container = containerNames(runtime, name);
    const containers = listAt(made, [...pod, "containers"]);
    const own = containers.findIndex((one) => isObject(one) && one.name === container);
    const at0 = own < 0 ? containers.length : own;
    made = withAt(made, [...pod, "containers", at0, "name"], container);
    roles.push({ name, pod, container: [...pod, "containers", at0] });
  }
  return { made: made as JsonObject, roles };
}

/** Without containers, jobs and the patch itself where they say nothing but their name. */
function tidied(manifest: JsonObject): JsonObject {
  const patches = listAt(manifest, PATCHES);
  const index = patches.findIndex((one) => isObject(one) && one.manager === MANAGER);
  const jobs = [...PATCHES, index, "trainingRuntimeSpec", "template", "spec", "replicatedJobs"];
  let made: Json = manifest;
  for (let n = listAt(made, jobs).length - 1; n >= 0; n -= 1) {
    const containers = [...jobs, n, ...POD, "containers"];
    for (let m = listAt(made, containers).length - 1; m >= 0; m -= 1) {
      made = withoutBare(made, [...containers, m]);
    }
    made = withoutBare(made, [...jobs, n]);
  }
  return withoutBare(made, [...PATCHES, index], "manager") as JsonObject;
}

function withoutBare(value: Json, path: Path, name = "name"): Json {
  const keys = Object.keys(objectAt(value, path));
  return keys.length === 1 && keys[0] === name ? withoutAt(value, path) : value;
}
