import { Pagination } from "@patternfly/react-core";
import { useRef } from "react";
import { words } from "../words";
import { type ListState, SIZES } from "./listState";

/**
 * Forwards by the token that a page answers, backwards by those that were seen. In a list that was
 * opened by its address in the middle, backwards leads to the first page.
 */
export function Pages({
  state,
  total,
  next,
  onChange,
}: {
  state: ListState;
  total: number;
  next: string;
  onChange: (change: Partial<ListState>) => void;
}) {
  const seen = useRef<string[]>([]);
  seen.current[state.page - 1] = state.after;
  const back = () => {
    const after = seen.current[state.page - 2];
    onChange(after ? { after, page: state.page - 1 } : { after: "", page: 1 });
  };
  return (
    <Pagination
      isCompact
      itemCount={total}
      page={state.page}
      perPage={state.size}
      perPageOptions={SIZES.map((value) => ({ title: String(value), value }))}
      onPreviousClick={back}
      onNextClick={() => onChange({ after: next, page: state.page + 1 })}
      onPerPageSelect={(_, size) => onChange({ size })}
      titles={{ paginationAriaLabel: words.jobs.pages, items: "" }}
    />
  );
}
