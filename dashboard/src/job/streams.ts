import { useQuery } from "@tanstack/react-query";

/**
 * Whether the server has a stream of this sort; undefined until it is known. An older server answers
 * 404 for the path, and is asked again and again instead.
 */
export function useStreams(sort: "job" | "logs", url: string): boolean | undefined {
  const { data } = useQuery({
    queryKey: ["streams", sort],
    queryFn: async () => {
      const stop = new AbortController();
      try {
        const response = await fetch(url, { signal: stop.signal, credentials: "same-origin" });
        if (response.status !== 404) return true;
        const problem = (await response.json()) as { type?: string };
        return !problem.type?.endsWith("no-path");
      } finally {
        stop.abort();
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data;
}
