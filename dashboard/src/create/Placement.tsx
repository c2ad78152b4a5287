/** Which nodes may run the job's pods. */
import { FormGroup, FormSelect, FormSelectOption } from "@patternfly/react-core";
import { useId } from "react";
import { words } from "../words";
import { usePods } from "./context";
import { type JsonObject, textAt } from "./model/json";
import * as pods from "./model/pods";
import { Said } from "./Problems";
import { Add, Adds, Cell, Line } from "./rows";

const said = words.create.advanced;
const EFFECTS = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];

export function Placement() {
  const job = usePods();
  const labels = job.view(pods.selectors);
  const tolerations = job.view((manifest, roles) =>
    pods.rows(manifest, pods.inPods(roles, "tolerations")),
  );
  const paths = job.view((_manifest, roles) =>
    roles.flatMap((role) => [
      [...role.pod, "nodeSelector"],
      [...role.pod, "tolerations"],
    ]),
  );
  return (
    <>
      {labels.map((label, n) => (
        <LabelLine key={label.roles.join() + String(n)} label={label} n={n + 1} />
      ))}
      {tolerations.map((row, n) => (
        <TolerationLine key={[...row.places].join()} row={row} n={n + 1} />
      ))}
      <Said paths={paths} />
      <Adds>
        <Add
          onClick={() =>
            job.change((manifest, roles) =>
              pods.withSelector(manifest, roles, null, { key: "", value: "" }),
            )
          }
        >
          {said.addLabel}
        </Add>
        <Add
          onClick={() =>
            job.change((manifest, roles) =>
              pods.withNewRow(manifest, pods.inPods(roles, "tolerations"), {
                key: "",
                operator: "Exists",
              }),
            )
          }
        >
          {said.addToleration}
        </Add>
      </Adds>
    </>
  );
}

function LabelLine({ label, n }: { label: pods.Label; n: number }) {
  const job = usePods();
  const set = (next: { key: string; value: string } | null) =>
    job.change((manifest, roles) => pods.withSelector(manifest, roles, label, next));
  return (
    <Line name={said.row(said.label, n)} onRemove={() => set(null)}>
      <Cell label={said.label} value={label.key} onChange={(key) => set({ ...label, key })} />
      <Cell label={said.value} value={label.value} onChange={(value) => set({ ...label, value })} />
    </Line>
  );
}

function TolerationLine({ row, n }: { row: pods.Row; n: number }) {
  const job = usePods();
  const id = useId();
  const { entry } = row;
  const set = (next: JsonObject) =>
    job.change((manifest, roles) =>
      pods.withRow(manifest, pods.inPods(roles, "tolerations"), row, next),
    );
  const withValue = (value: string) => {
    const { value: _old, ...rest } = entry;
    set(value ? { ...rest, operator: "Equal", value } : { ...rest, operator: "Exists" });
  };
  const withEffect = (effect: string) => {
    const { effect: _old, ...rest } = entry;
    set(effect ? { ...rest, effect } : rest);
  };
  return (
    <Line
      name={said.row(said.taint, n)}
      onRemove={() =>
        job.change((manifest, roles) =>
          pods.withoutRow(manifest, pods.inPods(roles, "tolerations"), row),
        )
      }
    >
      <Cell
        label={said.taint}
        value={textAt(entry, ["key"])}
        onChange={(key) => set({ ...entry, key })}
      />
      <Cell label={said.value} value={textAt(entry, ["value"])} onChange={withValue} />
      <FormGroup label={said.effect} fieldId={id}>
        <FormSelect
          id={id}
          value={textAt(entry, ["effect"])}
          onChange={(_event, effect) => withEffect(effect)}
        >
          {EFFECTS.map((effect) => (
            <FormSelectOption key={effect} value={effect} label={effect || said.anyEffect} />
          ))}
        </FormSelect>
      </FormGroup>
    </Line>
  );
}
