import {
  SearchInput,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from "@patternfly/react-core";
import { type ReactNode, useEffect, useState } from "react";
import type { JobList } from "../api/types";
import { words } from "../words";
import { FacetFilter } from "./FacetFilter";
import { FACETS, type FacetName, type ListState } from "./listState";

const TYPING_MS = 250;

export function JobsToolbar({
  state,
  list,
  onChange,
  bulk,
  columns,
  pages,
}: {
  state: ListState;
  list: JobList | undefined;
  onChange: (change: Partial<ListState>) => void;
  bulk: ReactNode;
  columns: ReactNode;
  pages: ReactNode;
}) {
  const choose = (facet: FacetName, values: readonly string[]) =>
    onChange({ facets: { ...state.facets, [facet]: values } });
  const none = Object.fromEntries(
    FACETS.map((facet) => [facet, []]),
  ) as unknown as ListState["facets"];
  return (
    <Toolbar
      className="odh-jobs-toolbar"
      clearAllFilters={() => onChange({ facets: none, name: "" })}
      clearFiltersButtonText={words.jobs.clearFilters}
    >
      <ToolbarContent>
        <ToolbarItem>
          <Search name={state.name} onChange={(name) => onChange({ name })} />
        </ToolbarItem>
        <ToolbarGroup variant="filter-group">
          {FACETS.filter((facet) => isUseful(facet, state, list)).map((facet) => (
            <FacetFilter
              key={facet}
              facet={facet}
              counts={list?.facets[facet] ?? {}}
              chosen={state.facets[facet]}
              onChange={(values) => choose(facet, values)}
            />
          ))}
        </ToolbarGroup>
        <ToolbarItem>{bulk}</ToolbarItem>
        <ToolbarGroup align={{ default: "alignEnd" }}>
          <ToolbarItem>{columns}</ToolbarItem>
          <ToolbarItem>{pages}</ToolbarItem>
        </ToolbarGroup>
      </ToolbarContent>
    </Toolbar>
  );
}

function Search({ name, onChange }: { name: string; onChange: (name: string) => void }) {
  const [text, setText] = useState(name);
  useEffect(() => setText(name), [name]);
  useEffect(() => {
    if (text === name) return undefined;
    const timer = setTimeout(() => onChange(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, name, onChange]);
  return (
    <SearchInput
      className="odh-search"
      aria-label={words.jobs.search}
      placeholder={words.jobs.search}
      value={text}
      onChange={(_, value) => setText(value)}
      onClear={() => onChange("")}
    />
  );
}

/** There is something to choose from. */
function isUseful(facet: FacetName, state: ListState, list: JobList | undefined): boolean {
  return state.facets[facet].length > 0 || Object.keys(list?.facets[facet] ?? {}).some(Boolean);
}
