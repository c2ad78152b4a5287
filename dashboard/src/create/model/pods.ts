/**
 * The pods of a job as the form sees them: lists that launcher and workers have alike. Pure.
 *
 * A row is one entry that stands in the lists of some or all roles; entries are matched by being
 * equal. An edit changes exactly those entries, in place; whatever the form has no field for stays.
 */

import {
  isObject,
  type Json,
  type JsonObject,
  listAt,
  objectAt,
  type Path,
  same,
  textAt,
  withAt,
  withoutAt,
} from "./json";

/** Where the pod spec of a role stands, and the container in it that runs the job. */
export interface Role {
  readonly name: string;
  readonly pod: Path;
  readonly container: Path;
}

export interface Row {
  readonly entry: JsonObject;
  /** role → place in its list */
  readonly places: ReadonlyMap<string, number>;
}

/** Paths of the same list in each role. */
export type Lists = readonly { readonly role: string; readonly path: Path }[];

export const inPods = (roles: readonly Role[], field: string): Lists =>
  roles.map((role) => ({ role: role.name, path: [...role.pod, field] }));

export const inContainers = (roles: readonly Role[], field: string): Lists =>
  roles.map((role) => ({ role: role.name, path: [...role.container, field] }));

export function rows(manifest: JsonObject, lists: Lists): Row[] {
  const found: { entry: JsonObject; places: Map<string, number> }[] = [];
  for (const { role, path } of lists) {
    listAt(manifest, path).forEach((entry, place) => {
      if (!isObject(entry)) {
        return;
      }
      const row = found.find((one) => !one.places.has(role) && same(one.entry, entry));
      if (row) {
        row.places.set(role, place);
      } else {
        found.push({ entry, places: new Map([[role, place]]) });
      }
    });
  }
  return found;
}

export function withRow(
  manifest: JsonObject,
  lists: Lists,
  row: Row,
  entry: JsonObject,
): JsonObject {
  let made: Json = manifest;
  for (const { role, path } of lists) {
    const place = row.places.get(role);
    if (place !== undefined) {
      made = withAt(made, [...path, place], entry);
    }
  }
  return made as JsonObject;
}

export function withNewRow(manifest: JsonObject, lists: Lists, entry: JsonObject): JsonObject {
  let made: Json = manifest;
  for (const { path } of lists) {
    made = withAt(made, path, [...listAt(made, path), entry]);
  }
  return made as JsonObject;
}

export function withoutRow(manifest: JsonObject, lists: Lists, row: Row): JsonObject {
  let made: Json = manifest;
  for (const { role, path } of lists) {
    const place = row.places.get(role);
    if (place !== undefined) {
      made = withoutAt(made, [...path, place]);
    }
  }
  return made as JsonObject;
}

/** A claim that is mounted: the volume and its one mount, in each role that has both. */
export interface ClaimRow {
  readonly claim: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly roles: readonly string[];
  readonly volume: string;
}

export interface Claim {
  readonly claim: string;
  readonly path: string;
  readonly readOnly: boolean;
}

export function claims(manifest: JsonObject, roles: readonly Role[]): ClaimRow[] {
  const found: ClaimRow[] = [];
  for (const role of roles) {
    const mounts = listAt(manifest, [...role.container, "volumeMounts"]).filter(isObject);
    for (const volume of listAt(manifest, [...role.pod, "volumes"]).filter(isObject)) {
      const source = objectAt(volume, ["persistentVolumeClaim"]);
      const own = mounts.filter((mount) => mount.name === volume.name);
      const mount = own[0];
      if (typeof source.claimName !== "string" || own.length !== 1 || mount === undefined) {
        continue;
      }
      const row = {
        claim: source.claimName,
        path: typeof mount.mountPath === "string" ? mount.mountPath : "",
        readOnly: mount.readOnly === true,
        volume: typeof volume.name === "string" ? volume.name : "",
      };
      const twin = found.findIndex(
        (one) =>
          one.volume === row.volume &&
          one.claim === row.claim &&
          one.path === row.path &&
          one.readOnly === row.readOnly &&
          !one.roles.includes(role.name),
      );
      const known = found[twin];
      if (known) {
        found[twin] = { ...known, roles: [...known.roles, role.name] };
      } else {
        found.push({ ...row, roles: [role.name] });
      }
    }
  }
  return found;
}

/** How many volumes the form does not show: they are kept, and edited in the YAML. */
export function otherVolumes(manifest: JsonObject, roles: readonly Role[]): number {
  const shown = claims(manifest, roles);
  const names = new Set<string>();
  for (const role of roles) {
    for (const volume of listAt(manifest, [...role.pod, "volumes"]).filter(isObject)) {
      const name = typeof volume.name === "string" ? volume.name : "";
      const known = shown.some((one) => one.volume === name && one.roles.includes(role.name));
      if (!known && !isSharedMemory(manifest, role, volume)) {
        names.add(name);
      }
    }
  }
  return names.size;
}

export function withClaim(
  manifest: JsonObject,
  roles: readonly Role[],
  row: ClaimRow,
  next: Claim,
): JsonObject {
  let made: Json = manifest;
  for (const role of roles.filter((one) => row.roles.includes(one.name))) {
    const volume = placeOf(made, [...role.pod, "volumes"], row.volume);
    const mount = placeOf(made, [...role.container, "volumeMounts"], row.volume);
    made = withAt(made, [...volume, "persistentVolumeClaim", "claimName"], next.claim);
    made = withAt(made, [...mount, "mountPath"], next.path);
    made = next.readOnly
      ? withAt(made, [...mount, "readOnly"], true)
      : withoutAt(made, [...mount, "readOnly"]);
  }
  return made as JsonObject;
}

export function withNewClaim(
  manifest: JsonObject,
  roles: readonly Role[],
  next: Claim,
): JsonObject {
  const name = freeName(manifest, roles);
  const mount = { name, mountPath: next.path, ...(next.readOnly ? { readOnly: true } : {}) };
  const volume = { name, persistentVolumeClaim: { claimName: next.claim } };
  return withVolume(manifest, roles, volume, mount);
}

export function withoutVolume(
  manifest: JsonObject,
  roles: readonly Role[],
  name: string,
  of: readonly string[],
): JsonObject {
  let made: Json = manifest;
  for (const role of roles.filter((one) => of.includes(one.name))) {
    made = withoutAt(made, placeOf(made, [...role.container, "volumeMounts"], name));
    made = withoutAt(made, placeOf(made, [...role.pod, "volumes"], name));
  }
  return made as JsonObject;
}

const SHM = "/dev/shm";

function isSharedMemory(manifest: Json, role: Role, volume: JsonObject): boolean {
  const mounts = listAt(manifest, [...role.container, "volumeMounts"]).filter(isObject);
  const mounted = mounts.filter((mount) => mount.name === volume.name);
  const source = objectAt(volume, ["emptyDir"]);
  return source.medium === "Memory" && mounted.length === 1 && mounted[0]?.mountPath === SHM;
}

/** The size of /dev/shm; empty where the job leaves that to the controller. */
export function sharedMemory(manifest: JsonObject, roles: readonly Role[]): string {
  for (const role of roles) {
    for (const volume of listAt(manifest, [...role.pod, "volumes"]).filter(isObject)) {
      if (isSharedMemory(manifest, role, volume)) {
        const size = objectAt(volume, ["emptyDir"]).sizeLimit;
        return typeof size === "string" || typeof size === "number" ? String(size) : "";
      }
    }
  }
  return "";
}

export function withSharedMemory(
  manifest: JsonObject,
  roles: readonly Role[],
  size: string,
): JsonObject {
  let made: Json = manifest;
  let there = false;
  for (const role of roles) {
    const volumes: JsonObject[] = listAt(made, [...role.pod, "volumes"]).filter(isObject);
    for (const volume of volumes) {
      const name = textAt(volume, ["name"]);
      if (!isSharedMemory(made, role, volume)) {
        continue;
      }
      there = true;
      const place = placeOf(made, [...role.pod, "volumes"], name);
      made = size
        ? withAt(made, [...place, "emptyDir", "sizeLimit"], size)
        : withoutVolume(made as JsonObject, roles, name, [role.name]);
    }
  }
  if (there || !size) {
    return made as JsonObject;
  }
  const name = freeName(manifest, roles);
  const volume = { name, emptyDir: { medium: "Memory", sizeLimit: size } };
  return withVolume(manifest, roles, volume, { name, mountPath: SHM });
}

function withVolume(
  manifest: JsonObject,
  roles: readonly Role[],
  volume: JsonObject,
  mount: JsonObject,
): JsonObject {
  const made = withNewRow(manifest, inPods(roles, "volumes"), volume);
  return withNewRow(made, inContainers(roles, "volumeMounts"), mount);
}

function placeOf(manifest: Json, path: Path, name: string): Path {
  const list = listAt(manifest, path);
  return [...path, list.findIndex((one) => isObject(one) && one.name === name)];
}

function freeName(manifest: Json, roles: readonly Role[]): string {
  const taken = new Set(
    roles.flatMap((role) =>
      listAt(manifest, [...role.pod, "volumes"]).map((one) => (isObject(one) ? one.name : "")),
    ),
  );
  let n = 0;
  while (taken.has(`volume-${String(n)}`)) {
    n += 1;
  }
  return `volume-${String(n)}`;
}

/** Labels that nodes must have. */
export interface Label {
  readonly key: string;
  readonly value: string;
  readonly roles: readonly string[];
}

export function selectors(manifest: JsonObject, roles: readonly Role[]): Label[] {
  const found: Label[] = [];
  for (const role of roles) {
    for (const [key, value] of Object.entries(objectAt(manifest, [...role.pod, "nodeSelector"]))) {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      const twin = found.findIndex((one) => one.key === key && one.value === text);
      const known = found[twin];
      if (known) {
        found[twin] = { ...known, roles: [...known.roles, role.name] };
      } else {
        found.push({ key, value: text, roles: [role.name] });
      }
    }
  }
  return found;
}

/** With one label instead of another, at its place; `null` takes it away. */
export function withSelector(
  manifest: JsonObject,
  roles: readonly Role[],
  old: Label | null,
  next: { key: string; value: string } | null,
): JsonObject {
  let made: Json = manifest;
  for (const role of roles) {
    if (old !== null && !old.roles.includes(role.name)) {
      continue;
    }
    const path = [...role.pod, "nodeSelector"];
    const before = Object.entries(objectAt(made, path));
    const kept = before.flatMap(([key, value]): [string, Json][] =>
      old !== null && key === old.key ? (next ? [[next.key, next.value]] : []) : [[key, value]],
    );
    const entries: [string, Json][] =
      old === null && next !== null ? [...kept, [next.key, next.value]] : kept;
    made =
      entries.length > 0 ? withAt(made, path, Object.fromEntries(entries)) : withoutAt(made, path);
  }
  return made as JsonObject;
}
