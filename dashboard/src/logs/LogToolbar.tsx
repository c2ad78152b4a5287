import {
  Button,
  Checkbox,
  Flex,
  FlexItem,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Switch,
  TextInput,
} from "@patternfly/react-core";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { words } from "../words";
import type { LogView } from "./address";
import type { Format } from "./exportLines";
import { LEVELS } from "./level";
import { parseRanks } from "./ranks";

interface Props {
  readonly view: LogView;
  readonly change: (changes: Partial<LogView>) => void;
  readonly clear: () => void;
  readonly pods: readonly string[];
  readonly attempts: readonly number[];
  /** what is wrong with the expression; empty where nothing is */
  readonly wrong: string;
  readonly follow: boolean;
  readonly onFollow: (follow: boolean) => void;
  readonly onFirstError: () => void;
  readonly onExport: (format: Format) => void;
}

const SPACE = { default: "gapMd" } as const;

export function LogToolbar(props: Props) {
  const text = words.logs;
  return (
    <search aria-label={text.filters} className="odh-log-toolbar">
      <div className="odh-log-choices">
        <Choices {...props} />
      </div>
      <Flex gap={SPACE} alignItems={{ default: "alignItemsCenter" }}>
        <Switch
          label={text.follow}
          isChecked={props.follow}
          onChange={(_, on) => props.onFollow(on)}
        />
        <Toggle name="bars" {...props} label={text.bars} on={props.view.bars !== "0"} off="0" />
        <Toggle
          name="allPods"
          {...props}
          label={text.workersOwn}
          on={props.view.allPods === "1"}
          help={text.workersOwnHelp}
        />
        <FlexItem align={{ default: "alignRight" }}>
          <Button size="sm" variant="link" onClick={props.clear}>
            {text.clear}
          </Button>
          <Button size="sm" variant="secondary" onClick={props.onFirstError}>
            {text.firstError}
          </Button>{" "}
          <Button size="sm" variant="secondary" onClick={() => props.onExport("text")}>
            {text.exportText}
          </Button>{" "}
          <Button size="sm" variant="secondary" onClick={() => props.onExport("json")}>
            {text.exportJson}
          </Button>
        </FlexItem>
      </Flex>
    </search>
  );
}

function Choices({ view, change, pods, attempts, wrong }: Props) {
  const text = words.logs;
  const ranksWrong = parseRanks(view.ranks) === null ? text.ranksWrong : "";
  return (
    <>
      <Typed
        label={text.search}
        value={view.text}
        placeholder={text.searchExample}
        wrong={wrong}
        onChange={(value) => change({ text: value, find: "" })}
      >
        <Checkbox
          id="odh-log-regex"
          label={text.expression}
          isChecked={view.regex === "1"}
          onChange={(_, on) => change({ regex: on ? "1" : "" })}
        />
      </Typed>
      <Typed
        label={text.ranks}
        value={view.ranks}
        placeholder={text.ranksExample}
        wrong={ranksWrong}
        onChange={(ranks) => change({ ranks })}
      />
      <Choice
        label={text.least}
        value={view.level}
        onChange={(level) => change({ level })}
        options={[["", text.everyLevel], ...LEVELS.map((one, at) => [one, text.atLeast[at]])]}
      />
      <Choice
        label={text.pod}
        value={view.pod}
        onChange={(pod) => change({ pod })}
        options={[
          ["", text.allPods],
          ...[...new Set([...pods, view.pod])].filter(Boolean).map((one) => [one, one]),
        ]}
      />
      {attempts.length > 0 && (
        <Choice
          label={text.attempt}
          value={view.attempt}
          onChange={(attempt) => change({ attempt })}
          options={[
            ["", text.allAttempts],
            ...[...new Set([...attempts, Math.max(...attempts) + 1])].map((one) => [
              String(one),
              text.attemptNumber(one),
            ]),
          ]}
        />
      )}
      <Moment label={text.from} value={view.from} onChange={(from) => change({ from })} />
      <Moment label={text.until} value={view.until} onChange={(until) => change({ until })} />
    </>
  );
}

function Toggle({
  name,
  label,
  on,
  off = "",
  help,
  change,
}: {
  name: keyof LogView;
  label: string;
  on: boolean;
  off?: string;
  help?: string;
  change: Props["change"];
}) {
  const set = off ? "" : "1";
  return (
    <span title={help}>
      <Switch
        label={label}
        isChecked={on}
        onChange={(_, now) => change({ [name]: now ? set : off })}
      />
    </span>
  );
}

/** A text that is put into the address when typing pauses. */
function Typed({
  label,
  value,
  placeholder,
  wrong,
  onChange,
  children,
}: {
  label: string;
  value: string;
  placeholder: string;
  wrong: string;
  onChange: (value: string) => void;
  children?: ReactNode;
}) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => latest.current(typed), 250);
    return () => clearTimeout(timer);
  }, [typed, value]);
  return (
    <FormGroup label={label} fieldId={id}>
      <TextInput
        id={id}
        type="search"
        value={typed}
        placeholder={placeholder}
        validated={wrong ? "error" : "default"}
        aria-describedby={wrong ? `${id}-wrong` : undefined}
        onChange={(_, text) => setTyped(text)}
      />
      {wrong && (
        <FormHelperText>
          <HelperText id={`${id}-wrong`} isLiveRegion>
            <HelperTextItem variant="error">{wrong}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      )}
      {children}
    </FormGroup>
  );
}

function Choice({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: readonly (readonly (string | undefined)[])[];
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <FormGroup label={label} fieldId={id}>
      <FormSelect id={id} value={value} onChange={(_, chosen) => onChange(chosen)}>
        {options.map(([one = "", name = ""]) => (
          <FormSelectOption key={one} value={one} label={name} />
        ))}
      </FormSelect>
    </FormGroup>
  );
}

function Moment({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <FormGroup label={label} fieldId={id} className="odh-log-moment">
      <TextInput
        id={id}
        type="datetime-local"
        step={1}
        value={value}
        onChange={(_, chosen) => onChange(chosen)}
      />
    </FormGroup>
  );
}
