/** How many workers, and what each of them needs. */
import {
  Alert,
  Form,
  FormFieldGroup,
  FormFieldGroupHeader,
  Grid,
  GridItem,
} from "@patternfly/react-core";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { CheckField, CountField, SelectField, TextField } from "./fields";
import { uneven } from "./model/demand";
import { at, type Path } from "./model/json";
import * as mpijob from "./model/mpijob";
import * as trainjob from "./model/trainjob";
import { Shortages } from "./Shortages";

const said = words.create.resources;
const GPU_CHOICES = mpijob.GPU_KINDS.map((value) => ({ value, label: value }));
const NODE: Path = ["spec", "trainer", "resourcesPerNode"];

export function Resources() {
  const { manifest } = useForm();
  return (
    <Form onSubmit={(event) => event.preventDefault()}>
      {isTrainJob(manifest) ? <Nodes /> : <Workers />}
    </Form>
  );
}

function Workers() {
  const { manifest, edit } = useForm();
  const mixed = uneven(manifest);
  const ranks = mpijob.ranks(manifest);
  const gpus = mpijob.gpus(manifest) * mpijob.workers(manifest);
  return (
    <>
      <Grid hasGutter md={6}>
        <CountField
          label={said.workers}
          help={said.workersHelp}
          paths={[mpijob.WORKERS]}
          isRequired
          least={1}
          value={mpijob.workers(manifest)}
          onChange={(count) => edit((job) => mpijob.withWorkers(job, count ?? 0))}
        />
        <CountField
          label={said.slots}
          help={said.slotsHelp}
          paths={[mpijob.SLOTS]}
          isRequired
          least={1}
          value={mpijob.slots(manifest)}
          onChange={(count) => edit((job) => mpijob.withSlots(job, count ?? 0))}
        />
        <WorkerGpus />
        <Amount role={mpijob.worker.container} name="cpu" label={said.cpu} help={said.cpuHelp} />
        <Amount
          role={mpijob.worker.container}
          name="memory"
          label={said.memory}
          help={said.memoryHelp}
        />
      </Grid>
      <Alert component="p" isInline isPlain variant="info" title={said.total(ranks, gpus)} />
      {mixed && (
        <Alert
          component="p"
          isInline
          variant="warning"
          title={said.uneven(mixed.slots, mixed.gpus)}
        />
      )}
      <Shortages />
      <FormFieldGroup
        header={
          <FormFieldGroupHeader
            titleText={{ text: said.launcher, id: "launcher-title" }}
            titleDescription={said.launcherAbout}
          />
        }
      >
        <Grid hasGutter md={6}>
          <Amount role={mpijob.launcher.container} name="cpu" label={said.launcherCpu} />
          <Amount role={mpijob.launcher.container} name="memory" label={said.launcherMemory} />
          <GridItem span={12}>
            <CheckField
              label={said.asWorker}
              paths={[mpijob.AS_WORKER]}
              value={at(manifest, mpijob.AS_WORKER) === true}
              onChange={(wanted) => edit((job) => mpijob.withLauncherAsWorker(job, wanted))}
            />
          </GridItem>
        </Grid>
      </FormFieldGroup>
    </>
  );
}

function WorkerGpus() {
  const { manifest, edit } = useForm();
  const kind = mpijob.gpuKind(manifest, mpijob.worker.container);
  const path = [...mpijob.worker.container, "resources", "limits", kind];
  return (
    <>
      <CountField
        label={said.gpus}
        paths={[path, [...mpijob.worker.container, "resources", "requests", kind]]}
        value={mpijob.gpus(manifest)}
        onChange={(count) => edit((job) => mpijob.withGpus(job, kind, count ?? 0))}
      />
      <SelectField
        label={said.gpuKind}
        paths={[]}
        value={kind}
        choices={GPU_CHOICES}
        onChange={(next) => edit((job) => mpijob.withGpus(job, next, mpijob.gpus(job)))}
      />
    </>
  );
}

function Amount({
  role,
  name,
  label,
  help,
}: {
  role: Path;
  name: string;
  label: string;
  help?: string;
}) {
  const { manifest, edit } = useForm();
  const differ = mpijob.differs(manifest, role, name) ? said.differ(name) : "";
  return (
    <TextField
      label={label}
      help={differ || help}
      paths={[
        [...role, "resources", "limits", name],
        [...role, "resources", "requests", name],
      ]}
      value={mpijob.resource(manifest, role, name)}
      onChange={(amount) => edit((job) => mpijob.withResource(job, role, name, amount.trim()))}
    />
  );
}

function Nodes() {
  const { manifest, edit, runtime } = useForm();
  const kind = trainjob.nodeGpuKind(manifest);
  const gpus = trainjob.nodeResource(manifest, kind);
  const set = (name: string) => (amount: string) =>
    edit((job) => trainjob.withNodeResource(job, name, amount.trim()));
  return (
    <>
      <Grid hasGutter md={6}>
        <CountField
          label={said.nodes}
          help={said.nodesOfRuntime(runtime?.numNodes ?? 1)}
          paths={[trainjob.NODES]}
          least={1}
          value={mpijob.number(manifest, trainjob.NODES)}
          onChange={(n) => edit((job) => trainjob.withCount(job, trainjob.NODES, n, runtime))}
        />
        <CountField
          label={said.processes}
          help={said.nodesOfRuntime(trainjob.processesOf(runtime))}
          paths={[trainjob.PROCESSES]}
          least={1}
          value={mpijob.number(manifest, trainjob.PROCESSES)}
          onChange={(n) => edit((job) => trainjob.withCount(job, trainjob.PROCESSES, n, runtime))}
        />
        <CountField
          label={said.gpus}
          paths={[
            [...NODE, "limits", kind],
            [...NODE, "requests", kind],
          ]}
          value={/^\d{1,9}$/.test(gpus) ? Number(gpus) : null}
          onChange={(n) => set(kind)(n ? String(n) : "")}
        />
        <TextField
          label={said.cpu}
          help={said.cpuHelp}
          paths={[
            [...NODE, "limits", "cpu"],
            [...NODE, "requests", "cpu"],
          ]}
          value={trainjob.nodeResource(manifest, "cpu")}
          onChange={set("cpu")}
        />
        <TextField
          label={said.memory}
          help={said.memoryHelp}
          paths={[
            [...NODE, "limits", "memory"],
            [...NODE, "requests", "memory"],
          ]}
          value={trainjob.nodeResource(manifest, "memory")}
          onChange={set("memory")}
        />
      </Grid>
      {trainjob.isMpi(runtime) && (
        <Alert
          component="p"
          isInline
          isPlain
          variant="info"
          title={said.total(trainjob.ranks(manifest, runtime), 0)}
        />
      )}
    </>
  );
}
