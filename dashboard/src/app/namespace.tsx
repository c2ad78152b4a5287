/**
 * The namespace that pages show; empty means all that the caller may see. It is in the address as
 * `namespace`, so that a page can be sent to somebody, and remembered in this browser for pages
 * whose address has none.
 */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { useParams } from "react-router";
import { get } from "../api/client";
import { useAddress } from "./address";

const KEY = "odh-namespace";
const VISITED = "odh-namespaces";
const MOST_VISITED = 10;
const ALL = "*";

/**
 * Those that were opened in this browser, the last one first. A plain Kubernetes does not tell which
 * ones somebody may see, so who was told of a project types its name.
 */
export function visited(): readonly string[] {
  return (localStorage.getItem(VISITED) ?? "").split(",").filter(Boolean);
}

function remember(name: string): void {
  localStorage.setItem(KEY, name || ALL);
  if (!name || name === ALL || !isName(name)) return;
  const others = visited().filter((one) => one !== name);
  localStorage.setItem(VISITED, [name, ...others].slice(0, MOST_VISITED).join(","));
}

/** What the API server takes as the name of a namespace. */
export function isName(text: string): boolean {
  return text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text);
}

export function useNamespaces() {
  return useQuery({
    queryKey: ["namespaces"],
    queryFn: ({ signal }) => get("/api/v1/namespaces", { signal }),
    staleTime: 60_000,
  });
}

export function useNamespace(): { namespace: string; setNamespace: (name: string) => void } {
  const [search, setSearch] = useAddress();
  const path = useParams();
  const asked = path.namespace ?? search.get("namespace") ?? localStorage.getItem(KEY) ?? ALL;
  const inAddress = search.get("namespace");
  useEffect(() => {
    if (inAddress) remember(inAddress);
  }, [inAddress]);
  const setNamespace = useCallback(
    (name: string) => {
      remember(name);
      setSearch((before) => {
        const after = new URLSearchParams(before);
        after.set("namespace", name || ALL);
        after.delete("page");
        return after;
      });
    },
    [setSearch],
  );
  return { namespace: asked === ALL ? "" : asked, setNamespace };
}

/** For pages that need exactly one: the one that is chosen, or the caller's own. */
export function useOneNamespace(): string {
  const { namespace } = useNamespace();
  const known = useNamespaces();
  return namespace || known.data?.default || "";
}
