/** A list of things of the job, each on a line of its own with a button that removes it. */
import { Button, Flex, FlexItem, FormGroup, TextInput } from "@patternfly/react-core";
import { MinusCircleIcon, PlusCircleIcon } from "@patternfly/react-icons";
import { type ReactNode, useId } from "react";
import { words } from "../words";
import { useForm } from "./context";

const said = words.create.advanced;

export function Line({
  name,
  children,
  onRemove,
}: {
  name: string;
  children: ReactNode;
  onRemove: () => void;
}) {
  const { draft } = useForm();
  return (
    <fieldset aria-label={name} className="odh-create-line">
      {children}
      <Button
        variant="plain"
        aria-label={said.remove(name)}
        icon={<MinusCircleIcon />}
        isDisabled={draft.fault !== null}
        onClick={onRemove}
      />
    </fieldset>
  );
}

export function Cell({
  label,
  value,
  onChange,
  field,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** Names of the fields that this is, for who looks for an error. */
  field?: string;
}) {
  const id = useId();
  const { draft } = useForm();
  return (
    <FormGroup label={label} fieldId={id}>
      <TextInput
        id={id}
        value={value}
        data-field={field}
        spellCheck={false}
        autoComplete="off"
        isDisabled={draft.fault !== null}
        onChange={(_event, text) => onChange(text)}
      />
    </FormGroup>
  );
}

export function Add({ children, onClick }: { children: string; onClick: () => void }) {
  const { draft } = useForm();
  return (
    <FlexItem>
      <Button
        variant="link"
        isInline
        icon={<PlusCircleIcon />}
        isDisabled={draft.fault !== null}
        onClick={onClick}
      >
        {children}
      </Button>
    </FlexItem>
  );
}

export function Adds({ children }: { children: ReactNode }) {
  return <Flex gap={{ default: "gapLg" }}>{children}</Flex>;
}
