/**
 * The namespace that pages show; empty means all that the caller may see. It is in the address as
 * `namespace`, so that a page can be sent to somebody, and remembered in this browser for pages
 * whose address has none.
 */
import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { useParams, useSearchParams } from "react-router";
import { get } from "../api/client";

const KEY = "odh-namespace";
const ALL = "*";

export function useNamespaces() {
  return useQuery({
    queryKey: ["namespaces"],
    queryFn: ({ signal }) => get("/api/v1/namespaces", { signal }),
    staleTime: 60_000,
  });
}

export function useNamespace(): { namespace: string; setNamespace: (name: string) => void } {
  const [search, setSearch] = useSearchParams();
  const path = useParams();
  const asked = path.namespace ?? search.get("namespace") ?? localStorage.getItem(KEY) ?? ALL;
  const setNamespace = useCallback(
    (name: string) => {
      localStorage.setItem(KEY, name || ALL);
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
