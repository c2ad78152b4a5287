/** What the pages of runtimes ask of the server. */
import { useQuery } from "@tanstack/react-query";
import { get, request } from "../api/client";
import { paths } from "../app/paths";
import type { RuntimeInfo } from "../create/server";

const ONE = "/api/v1/namespaces/{namespace}/runtimes/{name}";

export interface TestStep {
  readonly name: string;
  /** null where it was not tried */
  readonly passed: boolean | null;
  readonly detail: string;
  readonly remedy: string;
}

export interface TestReport {
  readonly passed: boolean;
  readonly summary: string;
  readonly steps: readonly TestStep[];
  readonly text: string;
  readonly seconds: number;
}

export function useRuntime(namespace: string, name: string, kind: string) {
  return useQuery({
    queryKey: ["runtime", namespace, name, kind],
    enabled: namespace !== "",
    queryFn: async ({ signal }) =>
      (await request("GET", ONE, {
        path: { namespace, name },
        query: { kind },
        signal,
      })) as RuntimeInfo,
  });
}

/** The runtime as it is read, without a pod. */
export function useLint(namespace: string, name: string, kind: string, allowed: boolean) {
  return useQuery({
    queryKey: ["runtime-lint", namespace, name, kind],
    enabled: namespace !== "" && allowed,
    staleTime: 60_000,
    queryFn: ({ signal }) => tested({ namespace, name, kind, smokeRun: false }, signal),
  });
}

export interface Test {
  readonly namespace: string;
  readonly name: string;
  readonly kind: string;
  readonly smokeRun: boolean;
}

export async function tested(
  { namespace, name, kind, smokeRun }: Test,
  signal: AbortSignal,
): Promise<TestReport> {
  const options = { path: { namespace, name }, query: { kind, smokeRun }, signal };
  return (await request("POST", `${ONE}/test`, options)) as TestReport;
}

/** How many of the project's jobs name each runtime. */
export function useUsage(namespace: string) {
  return useQuery({
    queryKey: ["runtime-usage", namespace],
    enabled: namespace !== "",
    staleTime: 10_000,
    queryFn: async ({ signal }) => {
      const path = "/api/v1/namespaces/{namespace}/jobs";
      const query = { kind: ["TrainJob"], limit: 1 };
      const found = await get(path, { path: { namespace }, query, signal });
      return found.facets.runtime as Record<string, number>;
    },
  });
}

/** Addresses: one runtime, its jobs, a new job of it. */
export const runtimePath = (namespace: string, { name, kind }: RuntimeInfo): string =>
  `${paths.runtimes}/${namespace}/${encodeURIComponent(name)}?${new URLSearchParams({ kind }).toString()}`;

export const jobsOf = (namespace: string, runtime: string): string =>
  `${paths.jobs}?${new URLSearchParams({ namespace, runtime }).toString()}`;

export const newJobPath = ({ name, kind }: RuntimeInfo, namespace: string): string =>
  `${paths.create}?${new URLSearchParams({ namespace, runtime: name, kind }).toString()}`;
