/**
 * An MPIJob as the form shows and changes it. Pure.
 *
 * The object is the only truth: each function reads from it, or gives it back with one change. So
 * whatever the form has no field for is kept. Conveniences are those of CLI and SDK (CTL-15): ranks
 * follow workers and slots, slots follow GPUs, pods go when the job has ended.
 */

import {
  at,
  isList,
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
import { mpiCommand, startsRanks, wrapped } from "./mpiCommand";
import type { Role } from "./pods";
import { join, literal, split, unescaped } from "./words";

export const KIND = "MPIJob";
export const API_VERSION = "kubeflow.org/v2beta1";
export const DOMAIN = "mpi-trainer.opendatahub.io";
export const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";
export const NVIDIA = "nvidia.com/gpu";
export const GPU_KINDS = [NVIDIA, "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi"] as const;
export const SSH = `${DOMAIN}/ssh`;
export const NETWORK_POLICY = `${DOMAIN}/network-policy`;

const LAUNCHER = "Launcher";
const WORKER = "Worker";
const SPECS: Path = ["spec", "mpiReplicaSpecs"];

export type RoleName = typeof LAUNCHER | typeof WORKER;

const podOf = (role: RoleName): Path => [...SPECS, role, "template", "spec"];
const containerOf = (role: RoleName): Path => [...podOf(role), "containers", 0];

export const launcher: Role = {
  name: LAUNCHER,
  pod: podOf(LAUNCHER),
  container: containerOf(LAUNCHER),
};
export const worker: Role = { name: WORKER, pod: podOf(WORKER), container: containerOf(WORKER) };

/** The roles that the job has; a new job has both. */
export function roles(manifest: JsonObject): Role[] {
  const there = [launcher, worker].filter(
    (role) => at(manifest, [...SPECS, role.name]) !== undefined,
  );
  return there.length > 0 ? there : [launcher, worker];
}

export function number(manifest: JsonObject, path: Path): number | null {
  const found = at(manifest, path);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

export const WORKERS: Path = [...SPECS, WORKER, "replicas"];
export const SLOTS: Path = ["spec", "slotsPerWorker"];
export const AS_WORKER: Path = ["spec", "runLauncherAsWorker"];
export const COMMAND: Path = [...launcher.container, "command"];
export const ARGS: Path = [...launcher.container, "args"];

export function workers(manifest: JsonObject): number {
  const without = at(manifest, [...SPECS, WORKER]) === undefined;
  return number(manifest, WORKERS) ?? (without ? 0 : 1);
}

export const slots = (manifest: JsonObject): number => number(manifest, SLOTS) ?? 1;

export function ranks(manifest: JsonObject): number {
  const more = at(manifest, AS_WORKER) === true ? 1 : 0;
  return (workers(manifest) + more) * slots(manifest);
}

/** A change after which `mpirun -n` starts as many ranks as there are slots, where it did before. */
function followed(before: JsonObject, after: JsonObject): JsonObject {
  const words = strings(at(before, COMMAND));
  const own = words === null ? null : wrapped(words, ranks(before));
  if (own === null) {
    return after;
  }
  return withAt(after, COMMAND, ["mpirun", "-n", String(ranks(after)), ...own]) as JsonObject;
}

export const withWorkers = (manifest: JsonObject, count: number): JsonObject =>
  followed(manifest, withAt(manifest, WORKERS, count) as JsonObject);

export const withSlots = (manifest: JsonObject, count: number): JsonObject =>
  followed(manifest, withAt(manifest, SLOTS, count) as JsonObject);

export function withLauncherAsWorker(manifest: JsonObject, wanted: boolean): JsonObject {
  const made = wanted ? withAt(manifest, AS_WORKER, true) : withoutAt(manifest, AS_WORKER);
  return followed(manifest, made as JsonObject);
}

// ---- image

export interface Image {
  readonly image: string;
  /** of the workers, where it is another one */
  readonly workers: string | null;
}

export function image(manifest: JsonObject): Image {
  const first = textAt(manifest, [...launcher.container, "image"]);
  const second =
    at(manifest, [...SPECS, WORKER]) === undefined
      ? first
      : textAt(manifest, [...worker.container, "image"]);
  return { image: first, workers: second === first ? null : second };
}

/** Of launcher and workers alike, unless they already differ. */
export function withImage(manifest: JsonObject, name: string): JsonObject {
  const both = image(manifest).workers === null;
  const into = both ? roles(manifest) : [launcher];
  return into.reduce((made, role) => withText(made, [...role.container, "image"], name), manifest);
}

export const withWorkerImage = (manifest: JsonObject, name: string): JsonObject =>
  withText(manifest, [...worker.container, "image"], name);

// ---- command

export interface Command {
  /** the user's own words, without the mpirun that was put before them */
  readonly line: string;
  /** whether mpirun is put before them */
  readonly wrapped: boolean;
  /** whether they start ranks by themselves */
  readonly startsRanks: boolean;
  /** as Kubernetes has them: `$` is not doubled */
  readonly raw: boolean;
  /** what runs in the end */
  readonly whole: readonly string[];
}

export const command = (manifest: JsonObject): Command =>
  commandAt(manifest, COMMAND, ranks(manifest));

export function commandAt(manifest: JsonObject, path: Path, count: number): Command {
  const words = strings(at(manifest, path)) ?? [];
  const own = wrapped(words, count);
  const stored = own ?? words;
  const plain = stored.map(unescaped);
  const raw = plain.includes(null);
  const shown = raw ? stored : plain.map((word) => word ?? "");
  return {
    line: join(shown),
    wrapped: own !== null,
    startsRanks: startsRanks(stored),
    raw,
    whole: words,
  };
}

export type Changed = { ok: true; manifest: JsonObject } | { ok: false; fault: "quote" | "escape" };

export function withCommand(manifest: JsonObject, line: string, wrap: boolean): Changed {
  const { raw } = command(manifest);
  return withCommandAt(manifest, COMMAND, ranks(manifest), { line, wrap, raw });
}

export interface Line {
  readonly line: string;
  readonly wrap: boolean;
  readonly raw: boolean;
}

export function withCommandAt(
  manifest: JsonObject,
  path: Path,
  count: number,
  given: Line,
): Changed {
  const found = split(given.line);
  if ("fault" in found) {
    return { ok: false, fault: found.fault };
  }
  if (found.words.length === 0) {
    return { ok: true, manifest: withoutAt(manifest, path) as JsonObject };
  }
  const words = given.wrap ? mpiCommand(found.words, count) : found.words;
  const stored = given.raw ? words : words.map(literal);
  return { ok: true, manifest: withAt(manifest, path, stored) as JsonObject };
}

export const strings = (value: Json | undefined): string[] | null =>
  isList(value) && value.every((one) => typeof one === "string") ? value : null;

// ---- resources

/** What the containers of a role ask for; limits go before requests. */
export function resource(manifest: JsonObject, container: Path, name: string): string {
  const limit = textAt(manifest, [...container, "resources", "limits", name]);
  return limit || textAt(manifest, [...container, "resources", "requests", name]);
}

/** Whether requests and limits of it differ; an edit by the form makes them alike. */
export function differs(manifest: JsonObject, container: Path, name: string): boolean {
  const limit = textAt(manifest, [...container, "resources", "limits", name]);
  const request = textAt(manifest, [...container, "resources", "requests", name]);
  return limit !== "" && request !== "" && limit !== request;
}

export function withResource(
  manifest: JsonObject,
  container: Path,
  name: string,
  amount: string,
): JsonObject {
  const sides = (["requests", "limits"] as const).map((side) => [
    ...container,
    "resources",
    side,
    name,
  ]);
  const there = sides.filter((path) => at(manifest, path) !== undefined);
  let made: Json = manifest;
  for (const path of there.length > 0 ? there : sides) {
    made = amount === "" ? withoutAt(made, path) : withAt(made, path, quantity(amount));
  }
  return made as JsonObject;
}

/** Whole numbers are numbers, as CLI and SDK write GPUs. */
const quantity = (amount: string): Json =>
  /^[1-9]\d{0,8}$|^0$/.test(amount) ? Number(amount) : amount;

/** The name of the GPUs that a container asks for. */
export function gpuKind(manifest: JsonObject, container: Path): string {
  const sides = ["limits", "requests"].flatMap((side) =>
    Object.keys(objectAt(manifest, [...container, "resources", side])),
  );
  const known: readonly string[] = GPU_KINDS;
  return sides.find((name) => known.includes(name) || /\/(gpu|mig-)/.test(name)) ?? NVIDIA;
}

export function gpus(manifest: JsonObject, container: Path = worker.container): number {
  const text = resource(manifest, container, gpuKind(manifest, container));
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/** Slots stay one for each GPU where they were so. */
export function withGpus(manifest: JsonObject, kind: string, count: number): JsonObject {
  const old = gpus(manifest);
  const follow = slots(manifest) === Math.max(old, 1);
  const bare = withResource(manifest, worker.container, gpuKind(manifest, worker.container), "");
  const made = withResource(bare, worker.container, kind, count > 0 ? String(count) : "");
  return follow && at(manifest, SLOTS) !== undefined
    ? followed(manifest, withSlots(made, Math.max(count, 1)))
    : made;
}

// ---- values at a place

export function withText(manifest: JsonObject, path: Path, text: string): JsonObject {
  return (text === "" ? withoutAt(manifest, path) : withAt(manifest, path, text)) as JsonObject;
}

export function withNumber(manifest: JsonObject, path: Path, value: number | null): JsonObject {
  return (value === null ? withoutAt(manifest, path) : withAt(manifest, path, value)) as JsonObject;
}

export function withFlag(manifest: JsonObject, path: Path, value: boolean): JsonObject {
  return (value ? withAt(manifest, path, true) : withoutAt(manifest, path)) as JsonObject;
}

const SCHEDULING: Path = ["spec", "runPolicy", "schedulingPolicy"];
const QUEUE: Path = ["metadata", "labels", QUEUE_LABEL];

export const queue = (manifest: JsonObject): string =>
  textAt(manifest, QUEUE) || textAt(manifest, [...SCHEDULING, "queue"]);

/** As a label, which Kueue reads; where the scheduling policy names one, there too. */
export function withQueue(manifest: JsonObject, name: string): JsonObject {
  const made = withText(manifest, QUEUE, name);
  const also = [...SCHEDULING, "queue"];
  return at(manifest, also) === undefined ? made : withText(made, also, name);
}

export const priority = (manifest: JsonObject): string =>
  textAt(manifest, [...launcher.pod, "priorityClassName"]) ||
  textAt(manifest, [...SCHEDULING, "priorityClass"]);

/** Of the pods; where the scheduling policy alone names one, there. */
export function withPriority(manifest: JsonObject, name: string): JsonObject {
  const policy = [...SCHEDULING, "priorityClass"];
  const inPods = roles(manifest).some((role) => at(manifest, [...role.pod, "priorityClassName"]));
  if (at(manifest, policy) !== undefined && !inPods) {
    return withText(manifest, policy, name);
  }
  return roles(manifest).reduce(
    (made, role) => withText(made, [...role.pod, "priorityClassName"], name),
    manifest,
  );
}

/** Whether the object has the shape that the form can show: one container at least in each role. */
export function fits(manifest: JsonObject): boolean {
  const specs = objectAt(manifest, SPECS);
  return (
    manifest.kind === KIND &&
    at(specs, [LAUNCHER]) !== undefined &&
    Object.keys(specs).every((role) =>
      isObject(listAt(specs, [role, "template", "spec", "containers"])[0]),
    )
  );
}
