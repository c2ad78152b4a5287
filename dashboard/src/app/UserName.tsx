import { useQuery } from "@tanstack/react-query";
import { get } from "../api/client";
import { words } from "../words";

export function useAbout() {
  return useQuery({
    queryKey: ["about"],
    queryFn: ({ signal }) => get("/api/v1", { signal }),
    staleTime: 60_000,
    // Also how a page without a stream finds out that the server is gone.
    refetchInterval: 20_000,
  });
}

export function UserName() {
  const { data } = useAbout();
  if (!data) return null;
  return (
    <span className="odh-nowrap" title={words.shell.backend(data.backend)}>
      {data.user || words.shell.thisMachine}
    </span>
  );
}
