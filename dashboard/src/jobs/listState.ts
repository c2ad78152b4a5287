/** What the list shows, as its address says it: a list can be sent to somebody and survives a reload. Pure. */
import type { Operations } from "../api/types";

export type Query = Operations["GET /api/v1/jobs"]["query"];
export type SortBy = NonNullable<Query["sortBy"]>;
export type FacetName = "state" | "kind" | "queue" | "runtime" | "owner";

export const FACETS: readonly FacetName[] = ["state", "kind", "queue", "runtime", "owner"];
export const SIZES = [20, 50, 100, 200] as const;
const SORTS: readonly SortBy[] = [
  "created",
  "duration",
  "gpus",
  "kind",
  "name",
  "namespace",
  "progress",
  "queue",
  "state",
  "workers",
];

export interface ListState {
  name: string;
  facets: Record<FacetName, readonly string[]>;
  sortBy: SortBy;
  order: "asc" | "desc";
  size: number;
  /** Where the page begins: what the page before it answered. Empty on the first. */
  after: string;
  page: number;
}

export function listState(search: URLSearchParams): ListState {
  const sort = search.get("sort") ?? "";
  const sortBy = SORTS.find((one) => one === sort) ?? "created";
  const order = search.get("order");
  const size = Number(search.get("size"));
  const page = Number(search.get("page"));
  const after = search.get("after") ?? "";
  return {
    name: search.get("name") ?? "",
    facets: Object.fromEntries(
      FACETS.map((facet) => [facet, parts(search.get(facet) ?? "")]),
    ) as Record<FacetName, string[]>,
    sortBy,
    order: order === "asc" || order === "desc" ? order : sortBy === "created" ? "desc" : "asc",
    size: SIZES.find((one) => one === size) ?? 50,
    after,
    page: after && Number.isInteger(page) && page > 1 ? page : 1,
  };
}

/** The address with some of it changed; whatever changes which jobs there are begins at page one. */
export function changed(search: URLSearchParams, change: Partial<ListState>): URLSearchParams {
  const next = new URLSearchParams(search);
  if (!("after" in change)) {
    next.delete("after");
    next.delete("page");
  }
  const { facets, sortBy, ...plain } = change;
  for (const [name, values] of Object.entries(facets ?? {})) set(next, name, joined(values));
  if (sortBy) next.set("sort", sortBy);
  for (const [name, value] of Object.entries(plain)) {
    set(next, name, name === "page" && value === 1 ? "" : String(value ?? ""));
  }
  return next;
}

export function apiQuery(state: ListState): Query {
  const { name, facets, sortBy, order, size, after } = state;
  return {
    name,
    state: facets.state as Query["state"],
    kind: [...facets.kind],
    queue: [...facets.queue],
    runtime: [...facets.runtime],
    owner: [...facets.owner],
    sortBy,
    order,
    limit: size,
    continue: after,
  };
}

export function isFiltered(state: ListState): boolean {
  return state.name !== "" || FACETS.some((facet) => state.facets[facet].length > 0);
}

/** A value may have commas itself, as the owner `CN=Jane,OU=ml` has. */
function joined(values: readonly string[]): string {
  return values.map((one) => one.replace(/[%,]/g, encodeURIComponent)).join(",");
}

function parts(text: string): string[] {
  const plain = (one: string) => one.replace(/%2C/gi, ",").replace(/%25/g, "%");
  return text.split(",").filter(Boolean).map(plain);
}

function set(search: URLSearchParams, name: string, value: string): void {
  if (value) search.set(name, value);
  else search.delete(name);
}
