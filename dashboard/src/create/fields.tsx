/**
 * Fields of the form: a label, an input, help, and what the server says of it. Whoever cannot see
 * hears the help and the error with the field.
 */
import {
  Checkbox,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  TextArea,
  TextInput,
} from "@patternfly/react-core";
import { type ReactNode, useEffect, useId, useState } from "react";
import { useForm, useProblems } from "./context";
import { fieldName, type Path } from "./model/json";
import type { Problem } from "./model/problems";

interface Common {
  label: string;
  /** What the field changes: the first names it. */
  paths: readonly Path[];
  help?: ReactNode;
  isRequired?: boolean;
  /** What is wrong in the browser already, before the server is asked. */
  fault?: string | null;
}

function useField(paths: readonly Path[], fault: string | null | undefined, help: ReactNode) {
  const id = useId();
  const { see } = useForm();
  const problems = useProblems(paths);
  const errors = problems.filter((one) => one.level === "error");
  const invalid = !!fault || errors.length > 0;
  return {
    id,
    problems,
    invalid,
    input: {
      id,
      "data-field": paths.map(fieldName).join(" "),
      validated: invalid ? ("error" as const) : ("default" as const),
      "aria-describedby": help || problems.length || fault ? `${id}-help` : undefined,
      onBlur: () => {
        for (const path of paths) see(fieldName(path));
      },
    },
  };
}

function Below({
  id,
  fault,
  problems,
  help,
}: {
  id: string;
  fault?: string | null;
  problems: readonly Problem[];
  help: ReactNode;
}) {
  if (!help && !fault && problems.length === 0) return null;
  return (
    <FormHelperText>
      <HelperText id={`${id}-help`} isLiveRegion>
        {fault && <HelperTextItem variant="error">{fault}</HelperTextItem>}
        {problems.map((one) => (
          <HelperTextItem
            key={one.field + one.text}
            variant={one.level === "error" ? "error" : "warning"}
          >
            {one.text}
          </HelperTextItem>
        ))}
        {help && <HelperTextItem>{help}</HelperTextItem>}
      </HelperText>
    </FormHelperText>
  );
}

export function TextField({
  value,
  onChange,
  placeholder,
  isCode,
  rows,
  ...field
}: Common & {
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  isCode?: boolean;
  rows?: number;
}) {
  const { id, problems, input } = useField(field.paths, field.fault, field.help);
  const { draft } = useForm();
  const shared = {
    ...input,
    value,
    placeholder,
    isRequired: field.isRequired,
    spellCheck: false,
    autoComplete: "off",
    isDisabled: draft.fault !== null,
    className: isCode ? "odh-code" : undefined,
    onChange: (_event: unknown, text: string) => onChange(text),
  };
  return (
    <FormGroup label={field.label} fieldId={id} isRequired={field.isRequired}>
      {rows ? (
        <TextArea {...shared} rows={rows} resizeOrientation="vertical" autoResize />
      ) : (
        <TextInput {...shared} />
      )}
      <Below id={id} fault={field.fault} problems={problems} help={field.help} />
    </FormGroup>
  );
}

/** A whole number; empty where nothing is said. What is no number stays in the field and is told. */
export function CountField({
  value,
  onChange,
  least = 0,
  placeholder,
  ...field
}: Common & {
  value: number | null;
  onChange: (value: number | null) => void;
  least?: number;
  placeholder?: string;
}) {
  const [text, setText] = useState(value === null ? "" : String(value));
  const { id, problems, input } = useField(field.paths, field.fault, field.help);
  const { draft } = useForm();
  useEffect(() => {
    setText((shown) => (read(shown) === value ? shown : value === null ? "" : String(value)));
  }, [value]);
  return (
    <FormGroup label={field.label} fieldId={id} isRequired={field.isRequired}>
      <TextInput
        {...input}
        type="number"
        inputMode="numeric"
        min={least}
        step={1}
        placeholder={placeholder}
        value={text}
        isRequired={field.isRequired}
        isDisabled={draft.fault !== null}
        onChange={(_event, next) => {
          setText(next);
          const count = read(next);
          if (count !== undefined && !(count === null && field.isRequired)) onChange(count);
        }}
        onBlur={() => {
          input.onBlur();
          setText(value === null ? "" : String(value));
        }}
      />
      <Below id={id} fault={field.fault} problems={problems} help={field.help} />
    </FormGroup>
  );
}

function read(text: string): number | null | undefined {
  if (text === "") return null;
  return /^-?\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export interface Choice {
  value: string;
  label: string;
}

/** What the job says is always among the choices. */
export function SelectField({
  value,
  onChange,
  choices,
  ...field
}: Common & { value: string; onChange: (value: string) => void; choices: readonly Choice[] }) {
  const { id, problems, input } = useField(field.paths, field.fault, field.help);
  const { draft } = useForm();
  const known = choices.some((one) => one.value === value);
  const shown = known ? choices : [...choices, { value, label: value }];
  return (
    <FormGroup label={field.label} fieldId={id} isRequired={field.isRequired}>
      <FormSelect
        {...input}
        value={value}
        isDisabled={draft.fault !== null}
        onChange={(_event, next) => onChange(next)}
      >
        {shown.map((one) => (
          <FormSelectOption key={one.value} value={one.value} label={one.label} />
        ))}
      </FormSelect>
      <Below id={id} fault={field.fault} problems={problems} help={field.help} />
    </FormGroup>
  );
}

export function CheckField({
  label,
  value,
  onChange,
  paths,
  help,
  isDisabled,
}: {
  label: string;
  value: boolean;
  onChange: (value: boolean) => void;
  paths: readonly Path[];
  help?: string;
  isDisabled?: boolean;
}) {
  const { draft } = useForm();
  const id = useId();
  return (
    <Checkbox
      id={id}
      label={label}
      description={help}
      isChecked={value}
      isDisabled={draft.fault !== null || isDisabled}
      data-field={paths.map(fieldName).join(" ")}
      onChange={(_event, next) => onChange(next)}
    />
  );
}
