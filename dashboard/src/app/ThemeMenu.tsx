import {
  Divider,
  MenuToggle,
  Select,
  SelectGroup,
  SelectList,
  SelectOption,
} from "@patternfly/react-core";
import { AdjustIcon } from "@patternfly/react-icons";
import { useState } from "react";
import { words } from "../words";
import { type Scheme, storedTheme, storeTheme, type Theme } from "./theme";

const SCHEMES: readonly Scheme[] = ["system", "light", "dark"];

export function ThemeMenu() {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const [isOpen, setOpen] = useState(false);
  const text = words.shell.theme;
  const change = (next: Theme) => {
    storeTheme(next);
    setTheme(next);
  };
  return (
    <Select
      isOpen={isOpen}
      onOpenChange={setOpen}
      popperProps={{ position: "right", appendTo: "inline" }}
      onSelect={(_, value) => {
        if (value === "contrast") change({ ...theme, highContrast: !theme.highContrast });
        else change({ ...theme, scheme: value as Scheme });
      }}
      toggle={(ref) => (
        <MenuToggle
          ref={ref}
          variant="plain"
          icon={<AdjustIcon />}
          isExpanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          aria-label={text.label}
        />
      )}
    >
      <SelectGroup label={text.colors}>
        <SelectList aria-label={text.colors}>
          {SCHEMES.map((scheme) => (
            <SelectOption key={scheme} value={scheme} isSelected={theme.scheme === scheme}>
              {text[scheme]}
            </SelectOption>
          ))}
        </SelectList>
      </SelectGroup>
      <Divider />
      <SelectGroup label={text.contrast}>
        <SelectList aria-label={text.contrast}>
          <SelectOption value="contrast" isSelected={theme.highContrast}>
            {text.high}
          </SelectOption>
        </SelectList>
      </SelectGroup>
    </Select>
  );
}
