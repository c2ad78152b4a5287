/** Plain JSON values and changes to them that leave the given value as it was. Pure. */

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}
export type Path = readonly (string | number)[];

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isList = (value: Json | undefined): value is Json[] => Array.isArray(value);

const own = (value: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined;

/** What stands at the path; undefined where nothing does. */
export function at(value: Json | undefined, path: Path): Json | undefined {
  let place = value;
  for (const part of path) {
    if (typeof part === "number") {
      place = isList(place) ? place[part] : undefined;
    } else {
      place = isObject(place) ? own(place, part) : undefined;
    }
  }
  return place;
}

export const textAt = (value: Json | undefined, path: Path): string => {
  const found = at(value, path);
  return typeof found === "string" ? found : typeof found === "number" ? String(found) : "";
};

export const listAt = (value: Json | undefined, path: Path): Json[] => {
  const found = at(value, path);
  return isList(found) ? found : [];
};

export const objectAt = (value: Json | undefined, path: Path): JsonObject => {
  const found = at(value, path);
  return isObject(found) ? found : {};
};

/**
 * The value with something else at the path, and all that leads there. A list takes a new element
 * only right behind its last one. Where something of another type is in the way, it is replaced.
 */
export function withAt(value: Json | undefined, path: Path, next: Json): Json {
  const [part, ...rest] = path;
  if (part === undefined) {
    return next;
  }
  if (typeof part === "number") {
    const list = isList(value) ? [...value] : [];
    const index = Math.min(part, list.length);
    list[index] = withAt(list[index], rest, next);
    return list;
  }
  const base = isObject(value) ? value : {};
  return { ...base, [part]: withAt(own(base, part), rest, next) };
}

/** The value without what is at the path, and without objects and lists that this empties. */
export function withoutAt(value: Json, path: Path): Json {
  return removed(value, path) ?? {};
}

function removed(value: Json, path: Path): Json | undefined {
  const [part, ...rest] = path;
  if (part === undefined) {
    return undefined;
  }
  const inner = at(value, [part]);
  if (inner === undefined) {
    return value;
  }
  const left = removed(inner, rest);
  if (typeof part === "number" && isList(value)) {
    const list = value.flatMap((one, n) =>
      n === part ? (left === undefined ? [] : [left]) : [one],
    );
    return list.length > 0 ? list : undefined;
  }
  if (!isObject(value)) {
    return value;
  }
  const entries = Object.entries(value).flatMap(([key, one]): [string, Json][] =>
    key === part ? (left === undefined ? [] : [[key, left]]) : [[key, one]],
  );
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

export function same(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) {
    return true;
  }
  if (isList(left) && isList(right)) {
    return left.length === right.length && left.every((one, n) => same(one, right[n]));
  }
  if (isObject(left) && isObject(right)) {
    const keys = Object.keys(left);
    return (
      keys.length === Object.keys(right).length &&
      keys.every((key) => key in right && same(left[key], own(right, key)))
    );
  }
  return false;
}

/** The path as Kubernetes writes it: `a.b[0].c`, and `labels[example.com/x]` for other keys. */
export function fieldName(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number" || !/^[\p{L}\p{N}_-]+$/u.test(part)) {
      text += `[${String(part)}]`;
    } else {
      text += text ? `.${part}` : part;
    }
  }
  return text;
}
