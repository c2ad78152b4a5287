/** What a job asks of its project, against what quotas leave; in numbers. Pure. */

import { at, type JsonObject, objectAt } from "./json";
import * as mpijob from "./mpijob";

export interface QuotaItem {
  readonly name: string;
  readonly resource: string;
  readonly hard: string;
  readonly used: string;
}

const BINARY: Record<string, number> = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };
const DECIMAL: Record<string, number> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

/** The number that a quantity such as `500m` or `16Gi` stands for; null where it is none. */
export function amount(text: string): number | null {
  const found =
    /^([+-]?(?:\d{1,18}(?:\.\d{0,9})?|\.\d{1,9}))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?$/.exec(
      text,
    );
  if (!found) {
    return null;
  }
  const value = Number(found[1]);
  const suffix = found[2] ?? "";
  const binary = BINARY[suffix];
  if (binary !== undefined) {
    return value * 1024 ** binary;
  }
  return value * 10 ** ((DECIMAL[suffix] ?? 0) + Number(found[3] ?? 0));
}

/** Of one kind: `workers` pods with `each`, and a launcher with `launcher`. */
export interface Demand {
  readonly resource: string;
  readonly workers: number;
  readonly each: number;
  readonly launcher: number;
}

export function demands(manifest: JsonObject): Demand[] {
  const count = mpijob.workers(manifest);
  const found: Demand[] = [{ resource: "pods", workers: count, each: 1, launcher: 1 }];
  const names = new Set<string>();
  for (const role of mpijob.roles(manifest)) {
    for (const side of ["requests", "limits"]) {
      const given = objectAt(manifest, [...role.container, "resources", side]);
      for (const name of Object.keys(given)) names.add(`${side}.${name}`);
    }
  }
  for (const name of names) {
    const [side = "", ...rest] = name.split(".");
    const resource = rest.join(".");
    found.push({
      resource: name,
      workers: count,
      each: asked(manifest, mpijob.worker.container, side, resource),
      launcher: asked(manifest, mpijob.launcher.container, side, resource),
    });
  }
  return found;
}

/** Where only a limit is given, it is the request too. */
function asked(
  manifest: JsonObject,
  container: readonly (string | number)[],
  side: string,
  name: string,
): number {
  const own = at(manifest, [...container, "resources", side, name]);
  const other =
    side === "requests" ? at(manifest, [...container, "resources", "limits", name]) : undefined;
  const value = own ?? other;
  return value === undefined ? 0 : (amount(String(value)) ?? 0);
}

export interface Shortage {
  readonly quota: string;
  readonly resource: string;
  readonly asked: number;
  readonly workers: number;
  readonly each: number;
  readonly hard: number;
  readonly used: number;
  readonly left: number;
  /** how many workers would fit into what is left */
  readonly fitting: number;
}

/** Quotas that the job would exceed; none for a job that waits in a queue or is suspended. */
export function shortages(manifest: JsonObject, quotas: readonly QuotaItem[]): Shortage[] {
  const suspended = at(manifest, ["spec", "runPolicy", "suspend"]) === true;
  if (suspended || mpijob.queue(manifest) !== "") {
    return [];
  }
  const needs = demands(manifest);
  return quotas.flatMap((quota) => {
    const name = ["cpu", "memory"].includes(quota.resource)
      ? `requests.${quota.resource}`
      : quota.resource;
    const need = needs.find((one) => one.resource === name);
    const [hard, used] = [amount(quota.hard), amount(quota.used)];
    if (!need || hard === null || used === null) {
      return [];
    }
    const total = need.workers * need.each + need.launcher;
    const left = Math.max(hard - used, 0);
    if (total <= left || need.each + need.launcher === 0) {
      return [];
    }
    const fitting = need.each > 0 ? Math.max(Math.floor((left - need.launcher) / need.each), 0) : 0;
    return [
      {
        quota: quota.name,
        resource: quota.resource,
        asked: total,
        workers: need.workers,
        each: need.each,
        hard,
        used,
        left,
        fitting,
      },
    ];
  });
}

/** Ranks of a worker that find no GPU of their own, or GPUs without a rank. */
export function uneven(manifest: JsonObject): { gpus: number; slots: number } | null {
  const gpus = mpijob.gpus(manifest);
  const slots = mpijob.slots(manifest);
  return gpus > 0 && gpus !== slots ? { gpus, slots } : null;
}
