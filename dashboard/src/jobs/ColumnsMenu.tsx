import { MenuToggle, Select, SelectList, SelectOption } from "@patternfly/react-core";
import { ColumnsIcon } from "@patternfly/react-icons";
import { useState } from "react";
import { inMain } from "../components/menus";
import { words } from "../words";
import { COLUMNS, type Column, type ColumnName } from "./columns";

export function ColumnsMenu({
  shown,
  onToggle,
}: {
  shown: readonly Column[];
  onToggle: (name: ColumnName) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Select
      role="menu"
      isOpen={isOpen}
      onOpenChange={setOpen}
      onSelect={(_, value) => onToggle(value as ColumnName)}
      popperProps={{ position: "right", ...inMain }}
      toggle={(ref) => (
        <MenuToggle
          ref={ref}
          variant="plain"
          icon={<ColumnsIcon />}
          aria-label={words.jobs.chooseColumns}
          isExpanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        />
      )}
    >
      <SelectList aria-label={words.jobs.chooseColumns}>
        {COLUMNS.filter((one) => one.name !== "name").map((one) => (
          <SelectOption
            key={one.name}
            value={one.name}
            hasCheckbox
            isSelected={shown.includes(one)}
          >
            {words.jobs.columns[one.name]}
          </SelectOption>
        ))}
      </SelectList>
    </Select>
  );
}
