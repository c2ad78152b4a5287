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
import { isName, useNamespace, useNamespaces, visited } from "./namespace";

export function NamespaceSelect() {
  const { namespace, setNamespace } = useNamespace();
  const known = useNamespaces();
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const names = [...new Set([...(known.data?.items ?? []), ...visited()])];
  const called = new Map(known.data?.projects.map((one) => [one.name, one.displayName]));
  const wanted = text.toLowerCase();
  const shown = names.filter((name) =>
    `${name}\n${called.get(name) ?? ""}`.toLowerCase().includes(wanted),
  );
  const label = called.get(namespace) || namespace || words.shell.allNamespaces;
  return (
    <Select
      isOpen={isOpen}
      isScrollable
      selected={namespace}
      onOpenChange={setOpen}
      popperProps={{ appendTo: "inline" }}
      onSelect={(_, value) => {
        setNamespace(String(value));
        setText("");
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
      <MenuSearch>
        <MenuSearchInput>
          <SearchInput
            value={text}
            onChange={(_, value) => setText(value)}
            aria-label={words.shell.searchNamespaces}
            placeholder={words.shell.searchNamespaces}
          />
        </MenuSearchInput>
      </MenuSearch>
      <Divider />
      <SelectList aria-label={words.shell.namespaces}>
        <SelectOption value="">{words.shell.allNamespaces}</SelectOption>
        {shown.map((name) => (
          <SelectOption key={name} value={name} description={called.get(name) ? name : undefined}>
            {called.get(name) || name}
          </SelectOption>
        ))}
        {isName(wanted) && !names.includes(wanted) && (
          <SelectOption value={wanted}>{words.shell.openNamespace(wanted)}</SelectOption>
        )}
      </SelectList>
    </Select>
  );
}
