/** What a page shows is chosen in its address, so that it can be sent to somebody. */
import { useCallback } from "react";
import { type NavigateOptions, useSearchParams } from "react-router";

export type Change = (before: URLSearchParams) => URLSearchParams;

/**
 * The choices, and a way to change them. A change is of what the address says now: what is rendered
 * may be older, and a choice of a moment before would be lost with it.
 */
export function useAddress(): [
  URLSearchParams,
  (change: Change, options?: NavigateOptions) => void,
] {
  const [search, setSearch] = useSearchParams();
  const change = useCallback(
    (how: Change, options?: NavigateOptions) =>
      setSearch(how(new URLSearchParams(window.location.search)), options),
    [setSearch],
  );
  return [search, change];
}
