/** What most jobs leave alone: volumes, environment, nodes, queue, end and retry, MPI. */
import { Content, Form, FormFieldGroup, FormFieldGroupHeader, Grid } from "@patternfly/react-core";
import type { ReactNode } from "react";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { Environment } from "./Environment";
import { CheckField, CountField, SelectField, TextField } from "./fields";
import { at, type Path, textAt } from "./model/json";
import * as mpijob from "./model/mpijob";
import * as trainjob from "./model/trainjob";
import { Placement } from "./Placement";
import { useQueues } from "./server";
import { Volumes } from "./Volumes";

const said = words.create.advanced;
const POLICY: Path = ["spec", "runPolicy"];
const GANG: Path = [...POLICY, "schedulingPolicy"];

export function Advanced() {
  const { manifest } = useForm();
  const train = isTrainJob(manifest);
  return (
    <Form onSubmit={(event) => event.preventDefault()}>
      <Content component="p">{said.about}</Content>
      <Section title={said.volumes}>
        <Volumes />
      </Section>
      <Section title={said.environment}>
        <Environment />
      </Section>
      <Section title={said.placement}>
        <Placement />
      </Section>
      <Section title={said.scheduling}>
        <Scheduling />
      </Section>
      <Section title={said.policy}>{train ? <TrainPolicy /> : <Policy />}</Section>
      {!train && (
        <Section title={said.mpi}>
          <Mpi />
        </Section>
      )}
    </Form>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  const id = `section-${title.replace(/\W+/g, "-").toLowerCase()}`;
  return (
    <FormFieldGroup header={<FormFieldGroupHeader titleText={{ text: title, id }} />}>
      {children}
    </FormFieldGroup>
  );
}

function Scheduling() {
  const { manifest, edit, namespace } = useForm();
  const queues = useQueues(namespace).data;
  const train = isTrainJob(manifest);
  const queue = mpijob.queue(manifest);
  const names = (queues ?? []).map((one) => one.name);
  const missing = queues !== undefined && queue !== "" && !names.includes(queue);
  return (
    <Grid hasGutter md={6}>
      <SelectField
        label={said.queue}
        help={missing ? said.queueMissing(queue, names.join(", ")) : said.queueHelp}
        paths={[
          ["metadata", "labels", mpijob.QUEUE_LABEL],
          [...GANG, "queue"],
        ]}
        value={queue}
        choices={[
          { value: "", label: said.noQueue },
          ...names.map((value) => ({ value, label: value })),
        ]}
        onChange={(name) => edit((job) => mpijob.withQueue(job, name))}
      />
      {!train && (
        <>
          <TextField
            label={said.priority}
            paths={[
              [...mpijob.launcher.pod, "priorityClassName"],
              [...mpijob.worker.pod, "priorityClassName"],
              [...GANG, "priorityClass"],
            ]}
            value={mpijob.priority(manifest)}
            onChange={(name) => edit((job) => mpijob.withPriority(job, name.trim()))}
          />
          <Count
            path={[...GANG, "minAvailable"]}
            label={said.minAvailable}
            help={said.minAvailableHelp}
          />
          <Count
            path={[...GANG, "scheduleTimeoutSeconds"]}
            label={said.scheduleTimeout}
            help={said.scheduleTimeoutHelp}
          />
        </>
      )}
      {train && (
        <Note
          path={trainjob.TIMEOUT}
          label={said.scheduleTimeout}
          help={said.scheduleTimeoutHelp}
        />
      )}
    </Grid>
  );
}

function Count({ path, label, help }: { path: Path; label: string; help?: string }) {
  const { manifest, edit } = useForm();
  return (
    <CountField
      label={label}
      help={help}
      paths={[path]}
      value={mpijob.number(manifest, path)}
      onChange={(count) => edit((job) => mpijob.withNumber(job, path, count))}
    />
  );
}

/** A number that stands as text in an annotation. */
function Note({ path, label, help }: { path: Path; label: string; help?: string }) {
  const { manifest, edit } = useForm();
  return (
    <TextField
      label={label}
      help={help}
      paths={[path]}
      value={textAt(manifest, path)}
      onChange={(text) => edit((job) => mpijob.withText(job, path, text.trim()))}
    />
  );
}

const CLEAN = [
  { value: "", label: said.cleanDefault },
  { value: "Running", label: said.cleanRunning },
  { value: "All", label: said.cleanAll },
  { value: "None", label: said.cleanNone },
];

function Choose({
  path,
  label,
  help,
  choices,
}: {
  path: Path;
  label: string;
  help?: string;
  choices: readonly { value: string; label: string }[];
}) {
  const { manifest, edit } = useForm();
  return (
    <SelectField
      label={label}
      help={help}
      paths={[path]}
      value={textAt(manifest, path)}
      choices={choices}
      onChange={(text) => edit((job) => mpijob.withText(job, path, text))}
    />
  );
}

function Suspended({ path }: { path: Path }) {
  const { manifest, edit } = useForm();
  return (
    <CheckField
      label={said.suspend}
      paths={[path]}
      value={at(manifest, path) === true}
      onChange={(wanted) => edit((job) => mpijob.withFlag(job, path, wanted))}
    />
  );
}

function Policy() {
  return (
    <>
      <Grid hasGutter md={6}>
        <Choose path={[...POLICY, "cleanPodPolicy"]} label={said.clean} choices={CLEAN} />
        <Count path={[...POLICY, "backoffLimit"]} label={said.backoff} />
        <Count path={[...POLICY, "activeDeadlineSeconds"]} label={said.deadline} />
        <Count path={[...POLICY, "ttlSecondsAfterFinished"]} label={said.ttl} />
      </Grid>
      <Suspended path={[...POLICY, "suspend"]} />
    </>
  );
}

function TrainPolicy() {
  return (
    <>
      <Grid hasGutter md={6}>
        <Choose path={trainjob.CLEAN} label={said.clean} choices={CLEAN.slice(0, 3)} />
        <Count path={trainjob.DEADLINE} label={said.deadline} />
        <Note path={trainjob.TTL} label={said.ttl} />
      </Grid>
      <Suspended path={["spec", "suspend"]} />
    </>
  );
}

function Mpi() {
  return (
    <Grid hasGutter md={6}>
      <Choose
        path={["spec", "mpiImplementation"]}
        label={said.implementation}
        help={said.implementationHelp}
        choices={["OpenMPI", "Intel", "MPICH"].map((value) => ({ value, label: value }))}
      />
      <Choose
        path={["metadata", "annotations", mpijob.SSH]}
        label={said.sshMode}
        choices={[
          { value: "", label: said.sshDefault },
          { value: "managed", label: said.sshManaged },
          { value: "compatible", label: said.sshCompatible },
        ]}
      />
      <Choose
        path={["spec", "launcherCreationPolicy"]}
        label={said.launcherCreation}
        choices={[
          { value: "", label: said.atStartup },
          { value: "WaitForWorkersReady", label: said.whenReady },
        ]}
      />
      <Choose
        path={["metadata", "annotations", mpijob.NETWORK_POLICY]}
        label={said.network}
        choices={[
          { value: "", label: said.networkDefault },
          { value: "restricted", label: said.networkRestricted },
          { value: "none", label: said.networkNone },
        ]}
      />
      <SshPath />
    </Grid>
  );
}

function SshPath() {
  const { manifest, edit } = useForm();
  const path = ["spec", "sshAuthMountPath"];
  return (
    <TextField
      label={said.sshPath}
      placeholder="/root/.ssh"
      paths={[path]}
      value={textAt(manifest, path)}
      onChange={(text) => edit((job) => mpijob.withText(job, path, text.trim()))}
    />
  );
}
