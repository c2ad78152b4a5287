/**
 * YAML text and the object it holds. Pure.
 *
 * Guarantee: text that is read again after an edit by the form holds exactly the edited object;
 * comments and layout of what the edit did not touch are kept. The size is bounded before anything
 * is parsed.
 */

import {
  Alias,
  type CreateNodeOptions,
  Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Tags,
  visit,
} from "yaml";

import { at, isList, isObject, type Json, type JsonObject, type Path, same } from "./json";

/** Characters; a job's spec may have 256 KiB as JSON. */
export const LARGEST = 512 * 1024;
const MOST_ALIASES = 100;
const DEEPEST = 100;
const NOT_JSON = new Set(["binary", "omap", "pairs", "set", "timestamp", "intTime", "floatTime"]);

export type Fault =
  | { kind: "size"; most: number }
  | { kind: "empty" }
  | { kind: "several" }
  | { kind: "object" }
  | { kind: "key" }
  | { kind: "syntax"; line: number; column: number; text: string };
export type Parsed = { ok: true; manifest: JsonObject } | { ok: false; fault: Fault };

const OPTIONS = {
  // As kubectl reads it: `on` is a boolean, `1e3` a number; what would be no JSON stays text.
  version: "1.1" as const,
  schema: "yaml-1.1",
  customTags: (tags: Tags): Tags =>
    tags.filter((tag) => {
      const name = typeof tag === "string" ? tag : (tag.tag.split(":").at(-1) ?? "");
      const format = typeof tag === "string" ? undefined : tag.format;
      return !NOT_JSON.has(name) && format !== "TIME";
    }),
  merge: true,
  prettyErrors: false,
  strict: true,
  uniqueKeys: true,
};
const STYLE = { lineWidth: 0, flowCollectionPadding: false } as const;
const NODES: CreateNodeOptions = { aliasDuplicateObjects: false };

export function parse(text: string): Parsed {
  const read = document(text);
  return read.ok ? { ok: true, manifest: read.manifest } : read;
}

type Read = { ok: true; manifest: JsonObject; doc: Document } | { ok: false; fault: Fault };

function document(text: string): Read {
  if (text.length > LARGEST) {
    return refused({ kind: "size", most: LARGEST });
  }
  const lines = new LineCounter();
  try {
    const doc = parseDocument(text, { ...OPTIONS, lineCounter: lines });
    const [error] = doc.errors;
    if (error?.code === "MULTIPLE_DOCS") {
      return refused({ kind: "several" });
    }
    if (error) {
      const { line, col } = lines.linePos(error.pos[0]);
      return refused({ kind: "syntax", line, column: col, text: error.message });
    }
    const value: unknown = doc.toJS({ maxAliasCount: MOST_ALIASES });
    if (value === null || value === undefined) {
      return refused({ kind: "empty" });
    }
    if (!isJson(value, 0)) {
      return refused({ kind: "key" });
    }
    return isObject(value) ? { ok: true, manifest: value, doc } : refused({ kind: "object" });
  } catch (error) {
    // Too many aliases, or too deep for the parser.
    const text = error instanceof Error ? error.message : String(error);
    return refused({ kind: "syntax", line: 1, column: 1, text });
  }
}

const refused = (fault: Fault): { ok: false; fault: Fault } => ({ ok: false, fault });

function isJson(value: unknown, depth: number): value is Json {
  if (depth > DEEPEST) {
    return false;
  }
  if (value === null || typeof value === "boolean" || typeof value === "string") {
    return true;
  }
  if (typeof value === "number") {
    return Number.isFinite(value);
  }
  if (Array.isArray(value)) {
    return value.every((one) => isJson(one, depth + 1));
  }
  const plain = typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
  return plain && Object.values(value).every((one) => isJson(one, depth + 1));
}

export function stringify(manifest: JsonObject): string {
  return new Document(manifest, null, { ...OPTIONS, ...NODES }).toString(STYLE);
}

/** The text with the object that the form has made of what it held. */
export function edited(text: string, next: JsonObject): string {
  const read = document(text);
  if (!read.ok || hasAliases(read.doc)) {
    return stringify(next);
  }
  if (same(read.manifest, next)) {
    return text;
  }
  try {
    change(read.doc, [], read.manifest, next);
    const made = read.doc.toString(STYLE);
    const again = parse(made);
    return again.ok && same(again.manifest, next) ? made : stringify(next);
  } catch {
    return stringify(next);
  }
}

/** An edit of what an alias stands for would change other places too. */
function hasAliases(doc: Document): boolean {
  let found = false;
  visit(doc, {
    Alias: (_key, node: Alias) => {
      found = node instanceof Alias;
      return visit.BREAK;
    },
  });
  return found;
}

function change(doc: Document, path: Path, old: Json | undefined, next: Json): void {
  if (same(old, next)) {
    return;
  }
  if (isObject(old) && isObject(next) && isMap(doc.getIn(path, true))) {
    for (const key of Object.keys(old)) {
      if (!(key in next)) {
        doc.deleteIn([...path, key]);
      }
    }
    for (const [key, value] of Object.entries(next)) {
      change(doc, [...path, key], key in old ? old[key] : undefined, value);
    }
  } else if (isList(old) && isList(next) && isSeq(doc.getIn(path, true))) {
    changeList(doc, path, old, next);
  } else {
    put(doc, path, next);
  }
}

/** What the lists have alike at their ends stays; what is between is changed one by one. */
function changeList(doc: Document, path: Path, old: Json[], next: Json[]): void {
  const shorter = Math.min(old.length, next.length);
  let before = 0;
  while (before < shorter && same(old[before], next[before])) {
    before += 1;
  }
  let after = 0;
  while (after < shorter - before && same(old.at(-1 - after), next.at(-1 - after))) {
    after += 1;
  }
  const sequence = doc.getIn(path, true);
  if (!isSeq(sequence)) {
    return;
  }
  const middle = next.slice(before, next.length - after);
  const kept = Math.min(middle.length, old.length - after - before);
  for (let n = 0; n < kept; n += 1) {
    change(doc, [...path, before + n], old[before + n], middle[n] ?? null);
  }
  const created = middle.slice(kept).map((one) => doc.createNode(one, NODES));
  sequence.items.splice(before + kept, old.length - after - before - kept, ...created);
}

function put(doc: Document, path: Path, next: Json): void {
  const node = path.length > 0 ? doc.getIn(path, true) : undefined;
  const scalar = next === null || typeof next !== "object";
  if (isScalar(node) && scalar && typeof node.value === typeof next) {
    node.value = next;
  } else {
    doc.setIn(path, doc.createNode(next, NODES));
  }
}

/** Where a field is written, as a place in the text; the nearest part around it. */
export function offsetOf(text: string, path: Path): number {
  const read = document(text);
  if (!read.ok) {
    return 0;
  }
  for (let length = path.length; length > 0; length -= 1) {
    const within = path.slice(0, length);
    if (at(read.manifest, within) !== undefined) {
      const parent = read.doc.getIn(within.slice(0, -1), true);
      const key = within.at(-1);
      const pair = isMap(parent)
        ? parent.items.find((one) => isScalar(one.key) && one.key.value === key)
        : undefined;
      const node = isScalar(pair?.key) ? pair.key : read.doc.getIn(within, true);
      const range = (node as { range?: readonly number[] | null } | undefined)?.range;
      return range?.[0] ?? 0;
    }
  }
  return 0;
}
