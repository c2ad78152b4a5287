/** What the wizard asks of the server, beside what all pages ask. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ProblemError, request } from "../api/client";
import type { Job, Queue } from "../api/types";
import type { QuotaItem } from "./model/demand";
import { isObject, type JsonObject } from "./model/json";
import { ofDryRun, ofRefusal, type Problem } from "./model/problems";
import type { Runtime } from "./model/trainjob";

const SPACE = "/api/v1/namespaces/{namespace}";
const DEBOUNCE_MS = 500;

export interface Checked {
  readonly problems: readonly Problem[];
  /** The object that the answer is about; null before the first answer. */
  readonly of: JsonObject | null;
  /** Why there is no answer: the server does not answer, or may not be asked. */
  readonly failed: unknown;
}

/** What the server says of the job, a moment after each change; an outdated call is cancelled. */
export function useCheck(namespace: string, manifest: JsonObject, enabled: boolean): Checked {
  const [checked, setChecked] = useState<Checked>({ problems: [], of: null, failed: null });
  useEffect(() => {
    if (!enabled || !namespace) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      dryRun(namespace, manifest, abort.signal).then(
        (problems) => setChecked({ problems, of: manifest, failed: null }),
        (failed: unknown) => {
          if (!abort.signal.aborted) setChecked({ problems: [], of: manifest, failed });
        },
      );
    }, DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [namespace, manifest, enabled]);
  return checked;
}

export async function dryRun(
  namespace: string,
  manifest: JsonObject,
  signal?: AbortSignal,
): Promise<Problem[]> {
  const path = `${SPACE}/plan/dry-run`;
  try {
    const answer = await request("POST", path, { path: { namespace }, body: manifest, signal });
    return ofDryRun(answer as { refusals: string[]; warnings: string[] });
  } catch (error) {
    const found = refusal(error);
    if (found) return found;
    throw error;
  }
}

/** The problems of an answer that refuses the job; null where it is about something else. */
export function refusal(error: unknown): Problem[] | null {
  if (!(error instanceof ProblemError)) return null;
  const { detail, hint = "", errors = [], type } = error.problem;
  // Another job has the name: that is what to change.
  if (type.endsWith(":exists"))
    return [{ field: "metadata.name", text: `${detail}. ${hint}`, level: "error" }];
  if (![400, 413, 422].includes(error.status)) return null;
  return ofRefusal({ detail, hint, errors });
}

export interface Upload {
  readonly name: string;
  readonly file: File;
}

export async function create(
  namespace: string,
  manifest: JsonObject,
  files: readonly Upload[],
): Promise<Job> {
  const kinds = manifest.kind === "TrainJob" ? "trainjobs" : "mpijobs";
  const path = `${SPACE}/${kinds}`;
  if (files.length === 0)
    return (await request("POST", path, { path: { namespace }, body: manifest })) as Job;
  const form = new FormData();
  form.append("job", new Blob([JSON.stringify(manifest)], { type: "application/json" }), "job");
  for (const { name, file } of files) form.append("files", file, name);
  return (await request("POST", path, { path: { namespace }, body: form })) as Job;
}

export interface Equivalents {
  readonly cli: string;
  readonly sdk: string;
  readonly yaml: string;
}

export function useEquivalents(namespace: string, manifest: JsonObject, enabled: boolean) {
  return useQuery({
    queryKey: ["equivalents", namespace, manifest],
    enabled: enabled && namespace !== "",
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const path = `${SPACE}/plan/equivalents`;
      return (await request("POST", path, {
        path: { namespace },
        body: manifest,
        signal,
      })) as Equivalents;
    },
  });
}

export interface RuntimeInfo extends Runtime {
  readonly namespace: string;
}

export function useRuntimes(namespace: string) {
  return useQuery({
    queryKey: ["runtimes", namespace],
    enabled: namespace !== "",
    staleTime: 30_000,
    queryFn: async ({ signal }) => {
      const path = `${SPACE}/runtimes`;
      const found = (await request("GET", path, { path: { namespace }, signal })) as {
        items: RuntimeInfo[];
      };
      return found.items.filter((one) => isObject(one.manifest));
    },
  });
}

export function useQueues(namespace: string) {
  return useQuery({
    queryKey: ["queues", namespace],
    enabled: namespace !== "",
    staleTime: 10_000,
    queryFn: async ({ signal }) => {
      const path = `${SPACE}/queues`;
      return (
        (await request("GET", path, { path: { namespace }, signal })) as {
          items: Queue[];
        }
      ).items;
    },
  });
}

/** null where the server cannot say. */
export function useQuota(namespace: string) {
  return useQuery({
    queryKey: ["quota", namespace],
    enabled: namespace !== "",
    staleTime: 10_000,
    queryFn: async ({ signal }): Promise<QuotaItem[] | null> => {
      try {
        const path = `${SPACE}/quota`;
        const found = await request("GET", path, { path: { namespace }, signal });
        return (found as { items: QuotaItem[] }).items;
      } catch (error) {
        if (error instanceof ProblemError && [403, 404].includes(error.status)) return null;
        throw error;
      }
    },
  });
}
