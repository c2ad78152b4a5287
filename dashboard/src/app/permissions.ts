/**
 * What the caller may do in a namespace. A button that would be refused is disabled and says why.
 * While it is not known, everything is offered: the server decides anyway, with the caller's token.
 */
import { useQuery } from "@tanstack/react-query";
import { ProblemError, request } from "../api/client";
import { words } from "../words";

export type Action =
  | "create-mpijobs"
  | "delete-mpijobs"
  | "change-mpijobs"
  | "create-trainjobs"
  | "delete-trainjobs"
  | "change-trainjobs"
  | "read-logs"
  | "read-pods"
  | "read-events"
  | "upload-code"
  | "test-runtimes";

export interface Permission {
  allowed: boolean;
  /** Why not, for the user; empty where it is allowed. */
  reason: string;
}

interface PermissionList {
  items: { action: string; allowed: boolean; reason: string }[];
}

async function permissions(namespace: string, signal: AbortSignal): Promise<PermissionList> {
  const path = "/api/v1/namespaces/{namespace}/permissions";
  try {
    return (await request("GET", path, { path: { namespace }, signal })) as PermissionList;
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return { items: [] };
    throw error;
  }
}

export function usePermissions(namespace: string): (action: Action) => Permission {
  const { data } = useQuery({
    queryKey: ["permissions", namespace],
    queryFn: ({ signal }) => permissions(namespace, signal),
    enabled: namespace !== "",
    staleTime: 60_000,
  });
  return (action) => {
    const found = data?.items.find((one) => one.action === action);
    if (!found || found.allowed) return { allowed: true, reason: "" };
    return { allowed: false, reason: found.reason || words.shell.missingRight(action, namespace) };
  };
}
