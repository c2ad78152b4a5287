/** Name, project, and for a TrainJob its runtime. */
import { Form } from "@patternfly/react-core";
import { useNamespaces } from "../app/namespace";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { SelectField, TextField } from "./fields";
import { type Path, textAt } from "./model/json";
import { withText } from "./model/mpijob";
import * as trainjob from "./model/trainjob";

const NAME: Path = ["metadata", "name"];
const NAMESPACE: Path = ["metadata", "namespace"];

export function Basics() {
  const { manifest, namespace, edit, runtimes, runtime } = useForm();
  const known = useNamespaces().data?.items ?? [];
  const named = textAt(manifest, trainjob.RUNTIME);
  return (
    <Form onSubmit={(event) => event.preventDefault()}>
      <TextField
        label={words.create.basics.name}
        help={words.create.basics.nameHelp}
        paths={[NAME]}
        isRequired
        value={textAt(manifest, NAME)}
        onChange={(name) => edit((job) => withText(job, NAME, name))}
      />
      <SelectField
        label={words.create.basics.project}
        paths={[NAMESPACE]}
        isRequired
        value={namespace}
        choices={known.map((value) => ({ value, label: value }))}
        onChange={(name) => edit((job) => withText(job, NAMESPACE, name))}
      />
      {isTrainJob(manifest) && (
        <SelectField
          label={words.create.basics.runtime}
          help={words.create.basics.runtimeHelp}
          paths={[trainjob.RUNTIME, ["spec", "runtimeRef"]]}
          isRequired
          value={named}
          choices={runtimes.map((one) => ({
            value: one.name,
            label: `${one.name} (${one.framework})`,
          }))}
          onChange={(name) => {
            const next = runtimes.find((one) => one.name === name);
            if (next) edit((job) => trainjob.withRuntime(job, runtime, next));
          }}
        />
      )}
    </Form>
  );
}
