/** What the page was opened for: a copy of a job, a runtime, or a job from the beginning. */
import { useQuery } from "@tanstack/react-query";
import { request } from "../api/client";
import type { Job } from "../api/types";
import { jobOfKey } from "../app/paths";
import type { JsonObject } from "./model/json";
import {
  copied,
  forRuntime,
  fromTemplate,
  LOCAL_IMAGE,
  nameOfCopy,
  withoutCode,
} from "./model/newJob";
import type { RuntimeInfo } from "./server";

export interface Source {
  readonly manifest: JsonObject;
  /** The job that was copied; empty where none was. */
  readonly copyOf: string;
  /** Its code does not come along. */
  readonly codeGone: boolean;
}

export interface Asked {
  readonly from: string;
  readonly runtime: string;
  readonly runtimeKind: string;
}

export function useSource(asked: Asked, namespace: string, local: boolean | undefined) {
  return useQuery({
    queryKey: ["create-source", asked, namespace, local],
    enabled: namespace !== "" && local !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    queryFn: ({ signal }) => source(asked, namespace, local === true, signal),
  });
}

async function source(
  asked: Asked,
  namespace: string,
  local: boolean,
  signal: AbortSignal,
): Promise<Source> {
  const job = asked.from ? jobOfKey(asked.from) : null;
  if (job) {
    const path = `/api/v1/namespaces/{namespace}/${job.kindPath}/{name}`;
    const names = { namespace: job.namespace, name: job.name };
    const found = (await request("GET", path, { path: names, signal })) as Job;
    const manifest = found.manifest as JsonObject;
    const copy = withoutCode(copied(manifest, nameOfCopy(job.name), job.namespace));
    return { manifest: copy.manifest, copyOf: job.name, codeGone: copy.had };
  }
  if (asked.runtime) {
    const path = "/api/v1/namespaces/{namespace}/runtimes/{name}";
    const names = { namespace, name: asked.runtime };
    const query = { kind: asked.runtimeKind };
    const found = (await request("GET", path, { path: names, query, signal })) as RuntimeInfo;
    return { manifest: forRuntime(found, namespace), copyOf: "", codeGone: false };
  }
  const manifest = fromTemplate("hello", namespace, local ? LOCAL_IMAGE : "");
  return { manifest, copyOf: "", codeGone: false };
}
