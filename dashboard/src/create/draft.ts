/**
 * The job that is being made: its object and its text, which always say the same, unless the text
 * cannot be read; then the object is what it held last. Kept for a reload of the page, less secrets.
 */
import { useCallback, useEffect, useReducer } from "react";
import type { JsonObject } from "./model/json";
import { withoutSecrets } from "./model/secrets";
import { edited, type Fault, parse, stringify } from "./model/yamlText";

export interface Draft {
  readonly manifest: JsonObject;
  readonly text: string;
  readonly fault: Fault | null;
  /** Whether a person has changed it since it was begun. */
  readonly changed: boolean;
}

type Change =
  | { do: "begin"; manifest: JsonObject }
  | { do: "edit"; edit: (manifest: JsonObject) => JsonObject }
  | { do: "type"; text: string };

export function begun(manifest: JsonObject): Draft {
  return { manifest, text: stringify(manifest), fault: null, changed: false };
}

export function next(draft: Draft, change: Change): Draft {
  if (change.do === "begin") return begun(change.manifest);
  if (change.do === "type") {
    if (change.text === draft.text) return draft;
    const read = parse(change.text);
    if (!read.ok) return { ...draft, text: change.text, fault: read.fault, changed: true };
    return { manifest: read.manifest, text: change.text, fault: null, changed: true };
  }
  // A text that cannot be read would be lost.
  if (draft.fault) return draft;
  const manifest = change.edit(draft.manifest);
  if (manifest === draft.manifest) return draft;
  return { manifest, text: edited(draft.text, manifest), fault: null, changed: true };
}

export function useDraft(first: () => JsonObject) {
  const [draft, dispatch] = useReducer(next, null, () => begun(first()));
  const begin = useCallback((manifest: JsonObject) => dispatch({ do: "begin", manifest }), []);
  const edit = useCallback(
    (change: (manifest: JsonObject) => JsonObject) => dispatch({ do: "edit", edit: change }),
    [],
  );
  const type = useCallback((text: string) => dispatch({ do: "type", text }), []);
  return { draft, begin, edit, type };
}

const KEY = "odh-create";
const LARGEST = 200_000;

export interface Stored {
  readonly manifest: JsonObject;
  readonly step: number;
  /** What the page was opened for: a job to copy, a runtime, or nothing. */
  readonly source: string;
  /** How many values were not kept because they may be secret. */
  readonly left: number;
}

export function stored(source: string): Stored | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Stored | null;
    return found?.source === source && typeof found.manifest === "object" ? found : null;
  } catch {
    return null;
  }
}

export function store(source: string, manifest: JsonObject, step: number): void {
  const kept = withoutSecrets(manifest);
  const text = JSON.stringify({ source, step, manifest: kept.manifest, left: kept.left });
  if (text.length > LARGEST) return;
  try {
    sessionStorage.setItem(KEY, text);
  } catch {
    // The browser keeps nothing: then a reload begins anew.
  }
}

export function forget(): void {
  sessionStorage.removeItem(KEY);
}

/** Stores what has been changed, a moment after the last change. */
export function useStored(source: string, draft: Draft, step: number): void {
  useEffect(() => {
    if (!draft.changed && step === 1) return;
    const timer = setTimeout(() => store(source, draft.manifest, step), 300);
    return () => clearTimeout(timer);
  }, [source, draft, step]);
}
