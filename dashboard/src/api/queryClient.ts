import { QueryCache, QueryClient } from "@tanstack/react-query";
import { ProblemError, ServerGone } from "./client";
import { connection } from "./connection";

/** A refusal is not asked again: the answer would be the same. */
function again(failures: number, error: Error): boolean {
  if (error instanceof ProblemError) return error.status >= 500 && failures < 2;
  return failures < 2;
}

export function queryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (error instanceof ServerGone) connection.report("queries", "reconnecting");
        if (error instanceof ProblemError && error.status === 401) connection.loggedOut();
      },
      onSuccess: () => {
        connection.report("queries", "live");
        connection.loggedIn();
      },
    }),
    defaultOptions: {
      queries: {
        retry: again,
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        networkMode: "always",
      },
      mutations: { retry: false, networkMode: "always" },
    },
  });
}
