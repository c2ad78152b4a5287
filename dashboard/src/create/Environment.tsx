/** Variables of the job, from values and from Secrets. */
import { HelperText, HelperTextItem } from "@patternfly/react-core";
import { words } from "../words";
import { isTrainJob, useForm, usePods } from "./context";
import { isObject, type JsonObject, objectAt, textAt } from "./model/json";
import * as mpijob from "./model/mpijob";
import {
  inContainers,
  type Lists,
  type Row,
  rows,
  withNewRow,
  withoutRow,
  withRow,
} from "./model/pods";
import { namesASecret } from "./model/secrets";
import { TRAINER } from "./model/trainjob";
import { Said } from "./Problems";
import { Add, Adds, Cell, Line } from "./rows";

const said = words.create.advanced;

function useLists(field: string): Lists {
  const { manifest } = useForm();
  if (isTrainJob(manifest)) return field === "env" ? [{ role: "", path: [...TRAINER, "env"] }] : [];
  return inContainers(mpijob.roles(manifest), field);
}

export function Environment() {
  const { manifest, edit } = useForm();
  const env = useLists("env");
  const from = useLists("envFrom");
  const add = (lists: Lists, entry: JsonObject) => edit((job) => withNewRow(job, lists, entry));
  return (
    <>
      {rows(manifest, env).map((row, n) => (
        <Variable key={places(row)} row={row} lists={env} n={n + 1} />
      ))}
      {rows(manifest, from).map((row, n) => (
        <WholeSecret key={places(row)} row={row} lists={from} n={n + 1} />
      ))}
      <Said paths={[...env, ...from].map((one) => one.path)} />
      <Adds>
        <Add onClick={() => add(env, { name: "", value: "" })}>{said.addVariable}</Add>
        <Add
          onClick={() => add(env, { name: "", valueFrom: { secretKeyRef: { name: "", key: "" } } })}
        >
          {said.addSecretVariable}
        </Add>
        {from.length > 0 && (
          <Add onClick={() => add(from, { secretRef: { name: "" } })}>{said.addSecret}</Add>
        )}
      </Adds>
    </>
  );
}

const places = (row: Row): string => [...row.places].map((place) => place.join(" ")).join(",");

function useRow(row: Row, lists: Lists) {
  const { edit } = useForm();
  const all = usePods().view((_manifest, roles) => roles.length);
  const [only = ""] = row.places.keys();
  return {
    set: (entry: JsonObject) => edit((job) => withRow(job, lists, row, entry)),
    remove: () => edit((job) => withoutRow(job, lists, row)),
    only: lists.length > 1 && row.places.size < all ? said.only(only) : "",
  };
}

function Variable({ row, lists, n }: { row: Row; lists: Lists; n: number }) {
  const { set, remove, only } = useRow(row, lists);
  const { entry } = row;
  const name = textAt(entry, ["name"]);
  const ref = objectAt(entry, ["valueFrom", "secretKeyRef"]);
  const secret = isObject(entry.valueFrom) && "secretKeyRef" in entry.valueFrom;
  const change = (field: string, value: string) =>
    set({ ...entry, valueFrom: { secretKeyRef: { ...ref, [field]: value } } });
  const suspicious =
    !secret && typeof entry.value === "string" && entry.value && namesASecret(name);
  return (
    <>
      <Line name={said.row(said.variable, n)} onRemove={remove}>
        <Cell
          label={said.variable}
          value={name}
          onChange={(text) => set({ ...entry, name: text })}
        />
        {secret ? (
          <>
            <Cell
              label={said.secret}
              value={textAt(ref, ["name"])}
              onChange={(text) => change("name", text)}
            />
            <Cell
              label={said.secretKey}
              value={textAt(ref, ["key"])}
              onChange={(text) => change("key", text)}
            />
          </>
        ) : entry.valueFrom === undefined ? (
          <Cell
            label={said.value}
            value={textAt(entry, ["value"])}
            onChange={(value) => set({ ...entry, value })}
          />
        ) : (
          <span className="odh-muted">{said.kept}</span>
        )}
        {only && <span className="odh-muted">{only}</span>}
      </Line>
      {suspicious && (
        <HelperText>
          <HelperTextItem variant="warning">{said.plainSecret}</HelperTextItem>
        </HelperText>
      )}
    </>
  );
}

function WholeSecret({ row, lists, n }: { row: Row; lists: Lists; n: number }) {
  const { set, remove, only } = useRow(row, lists);
  const { entry } = row;
  const ref = objectAt(entry, ["secretRef"]);
  return (
    <Line name={said.row(said.secret, n)} onRemove={remove}>
      {"secretRef" in entry ? (
        <Cell
          label={said.secret}
          value={textAt(ref, ["name"])}
          onChange={(name) => set({ ...entry, secretRef: { ...ref, name } })}
        />
      ) : (
        <span className="odh-muted">{said.kept}</span>
      )}
      {only && <span className="odh-muted">{only}</span>}
    </Line>
  );
}
