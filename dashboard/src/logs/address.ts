/** The state of the log viewer as a page's address holds it. Pure. */

import type { LineFilter } from "./filter";
import { LEVELS } from "./level";
import { parseRanks } from "./ranks";

export interface LogView {
  readonly ranks: string;
  readonly pod: string;
  readonly level: string;
  readonly attempt: string;
  readonly from: string;
  readonly until: string;
  readonly text: string;
  readonly regex: string;
  /** `0` draws every drawing of a progress bar */
  readonly bars: string;
  readonly allPods: string;
  /** a line that is to be shown: the first that contains this text */
  readonly find: string;
}

const EMPTY: LogView = {
  ranks: "",
  pod: "",
  level: "",
  attempt: "",
  from: "",
  until: "",
  text: "",
  regex: "",
  bars: "",
  allPods: "",
  find: "",
};
const NAMES = Object.keys(EMPTY) as (keyof LogView)[];

export function viewOf(search: URLSearchParams): LogView {
  const found: Record<string, string> = {};
  for (const name of NAMES) found[name] = search.get(name) ?? "";
  return { ...EMPTY, ...found };
}

/** The address with some values changed; what is empty is left out of it. */
export function withView(search: URLSearchParams, changes: Partial<LogView>): URLSearchParams {
  const after = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) after.set(name, value);
    else after.delete(name);
  }
  return after;
}

export function cleared(search: URLSearchParams): URLSearchParams {
  const after = new URLSearchParams(search);
  for (const name of NAMES) after.delete(name);
  return after;
}

export function filterOf(view: LogView): LineFilter {
  const ranks = parseRanks(view.ranks);
  return {
    ranks: ranks && ranks.size > 0 ? ranks : null,
    pod: view.pod,
    attempt: numberOf(view.attempt),
    least: LEVELS.indexOf(view.level as (typeof LEVELS)[number]),
    from: timeOf(view.from),
    until: timeOf(view.until),
    text: view.text,
    expression: view.regex === "1",
    bars: view.bars !== "0",
  };
}

export function numberOf(text: string): number | null {
  return /^\d{1,5}$/.test(text) ? Number(text) : null;
}

function timeOf(text: string): number | null {
  const found = Date.parse(text);
  return Number.isNaN(found) ? null : found;
}
