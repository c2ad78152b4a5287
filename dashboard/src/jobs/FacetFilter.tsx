import {
  Badge,
  MenuToggle,
  Select,
  SelectList,
  SelectOption,
  ToolbarFilter,
} from "@patternfly/react-core";
import { useState } from "react";
import { inMain } from "../components/menus";
import { words } from "../words";
import type { FacetName } from "./listState";

/** Several values of one facet, each with how many jobs have it; chosen ones stay offered at 0. */
export function FacetFilter({
  facet,
  counts,
  chosen,
  onChange,
}: {
  facet: FacetName;
  counts: Record<string, number>;
  chosen: readonly string[];
  onChange: (values: readonly string[]) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const title = words.jobs.facets[facet];
  const values = [...new Set([...Object.keys(counts), ...chosen])].filter(Boolean).sort();
  const toggled = (value: string) =>
    chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value];
  return (
    <ToolbarFilter
      categoryName={title}
      labels={[...chosen]}
      deleteLabel={(_, label) => onChange(toggled(String(label)))}
      deleteLabelGroup={() => onChange([])}
    >
      <Select
        role="menu"
        isOpen={isOpen}
        isScrollable
        onOpenChange={setOpen}
        popperProps={inMain}
        onSelect={(_, value) => onChange(toggled(String(value)))}
        toggle={(ref) => (
          <MenuToggle
            ref={ref}
            isExpanded={isOpen}
            isDisabled={values.length === 0}
            onClick={() => setOpen(!isOpen)}
            badge={chosen.length > 0 ? <Badge isRead>{chosen.length}</Badge> : undefined}
          >
            {title}
          </MenuToggle>
        )}
      >
        <SelectList aria-label={title}>
          {values.map((value) => (
            <SelectOption key={value} value={value} hasCheckbox isSelected={chosen.includes(value)}>
              {value} <Badge isRead>{counts[value] ?? 0}</Badge>
            </SelectOption>
          ))}
        </SelectList>
      </Select>
    </ToolbarFilter>
  );
}
