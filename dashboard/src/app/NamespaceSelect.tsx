import {
  Divider,
  MenuSearch,
  MenuSearchInput,
  MenuToggle,
  SearchInput,
  Select,
  SelectList,
  SelectOption,
} from "@patternfly/react-core";
import { useState } from "react";
import { words } from "../words";
import { useNamespace, useNamespaces } from "./namespace";

const MANY = 8;

export function NamespaceSelect() {
  const { namespace, setNamespace } = useNamespace();
  const known = useNamespaces();
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const names = known.data?.items ?? [];
  const shown = names.filter((name) => name.includes(text.toLowerCase()));
  const label = namespace || words.shell.allNamespaces;
  return (
    <Select
      isOpen={isOpen}
      isScrollable
      selected={namespace}
      onOpenChange={setOpen}
      popperProps={{ appendTo: "inline" }}
      onSelect={(_, value) => {
        setNamespace(String(value));
        setOpen(false);
      }}
      toggle={(ref) => (
        <MenuToggle
          ref={ref}
          isExpanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          aria-label={words.shell.namespace(label)}
        >
          {words.shell.namespace(label)}
        </MenuToggle>
      )}
    >
      {names.length > MANY && (
        <>
          <MenuSearch>
            <MenuSearchInput>
              <SearchInput
                value={text}
                onChange={(_, value) => setText(value)}
                aria-label={words.shell.searchNamespaces}
              />
            </MenuSearchInput>
          </MenuSearch>
          <Divider />
        </>
      )}
      <SelectList aria-label={words.shell.namespaces}>
        <SelectOption value="">{words.shell.allNamespaces}</SelectOption>
        {shown.map((name) => (
          <SelectOption key={name} value={name}>
            {name}
          </SelectOption>
        ))}
      </SelectList>
    </Select>
  );
}
