/** Image and command, as the launcher will run it, and code that travels with the job. */
import { Alert, ClipboardCopy, Form, FormGroup } from "@patternfly/react-core";
import { useState } from "react";
import { words } from "../words";
import { Code } from "./Code";
import { isTrainJob, useForm } from "./context";
import { CheckField, TextField } from "./fields";
import { at, type JsonObject, type Path, textAt } from "./model/json";
import * as mpijob from "./model/mpijob";
import * as trainjob from "./model/trainjob";
import { join, unescaped } from "./model/words";

const said = words.create.program;

export function Program() {
  const { manifest } = useForm();
  return (
    <Form onSubmit={(event) => event.preventDefault()}>
      {isTrainJob(manifest) ? <TrainImage /> : <Images />}
      <Command />
      {!isTrainJob(manifest) && <Code />}
    </Form>
  );
}

function Images() {
  const { manifest, edit, local } = useForm();
  const { image, workers } = mpijob.image(manifest);
  return (
    <>
      <TextField
        label={said.image}
        help={local ? said.imageLocal : said.imageHelp}
        paths={[
          [...mpijob.launcher.container, "image"],
          ...(workers === null ? [[...mpijob.worker.container, "image"]] : []),
        ]}
        isRequired
        isCode
        value={image}
        onChange={(name) => edit((job) => mpijob.withImage(job, name))}
      />
      {workers !== null && (
        <TextField
          label={said.workerImage}
          paths={[[...mpijob.worker.container, "image"]]}
          isRequired
          isCode
          value={workers}
          onChange={(name) => edit((job) => mpijob.withWorkerImage(job, name))}
        />
      )}
    </>
  );
}

function TrainImage() {
  const { manifest, edit, runtime } = useForm();
  return (
    <TextField
      label={said.image}
      help={said.imageOfRuntime(trainjob.imageOf(runtime))}
      paths={[trainjob.IMAGE]}
      isCode
      value={textAt(manifest, trainjob.IMAGE)}
      onChange={(name) => edit((job) => mpijob.withText(job, trainjob.IMAGE, name))}
    />
  );
}

/**
 * The line as it was typed stays in the field, also while a quotation is open; the job has its
 * words.
 */
function Command() {
  const { manifest, edit, runtime } = useForm();
  const train = isTrainJob(manifest);
  const path: Path = train ? trainjob.COMMAND : mpijob.COMMAND;
  const command = train ? trainjob.command(manifest, runtime) : mpijob.command(manifest);
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null);
  const [fault, setFault] = useState<"quote" | "escape" | null>(null);
  const [plain, setPlain] = useState(command.line !== "" && !command.wrapped);
  const wraps = !train || trainjob.isMpi(runtime);
  const wrap = wraps && !(plain && !command.wrapped);
  const change = (job: JsonObject, line: string, wanted: boolean) =>
    train
      ? trainjob.withCommand(job, runtime, line, wanted)
      : mpijob.withCommand(job, line, wanted);
  const write = (line: string, wanted: boolean) => {
    const found = change(manifest, line, wanted);
    setFault(found.ok ? null : found.fault);
    if (!found.ok) return setTyped({ text: line, of: command.line });
    const stored = train
      ? trainjob.command(found.manifest, runtime)
      : mpijob.command(found.manifest);
    setTyped({ text: line, of: stored.line });
    edit(() => found.manifest);
  };
  const shown = typed !== null && typed.of === command.line ? typed.text : command.line;
  return (
    <>
      <TextField
        label={said.command}
        help={help(train, command.raw)}
        fault={fault && shown !== command.line ? said.faults[fault] : null}
        paths={[path]}
        isCode
        rows={2}
        isRequired={!train}
        value={shown}
        onChange={(line) => write(line, wrap)}
      />
      {wraps && !command.startsRanks && (
        <CheckField
          label={said.wrap}
          help={said.wrapHelp}
          paths={[]}
          value={wrap}
          onChange={(wanted) => {
            setPlain(!wanted);
            write(shown, wanted);
          }}
        />
      )}
      {command.startsRanks && (
        <Alert component="p" isInline isPlain variant="info" title={said.starts} />
      )}
      {command.whole.length > 0 && <Whole command={command.whole} />}
      <Arguments path={train ? trainjob.ARGS : mpijob.ARGS} />
    </>
  );
}

const help = (train: boolean, raw: boolean): string => {
  const text = raw ? said.commandRaw : said.commandHelp;
  return train ? `${said.commandOfRuntime} ${text}` : text;
};

function Whole({ command }: { command: readonly string[] }) {
  return (
    <FormGroup label={said.whole} role="group">
      <ClipboardCopy
        isReadOnly
        isCode
        isExpanded={false}
        variant="inline-compact"
        hoverTip={words.create.review.copy}
        clickTip={words.create.review.copied}
        textAriaLabel={said.whole}
      >
        {join(command.map((word) => unescaped(word) ?? word))}
      </ClipboardCopy>
    </FormGroup>
  );
}

function Arguments({ path }: { path: Path }) {
  const { manifest } = useForm();
  const found = mpijob.strings(at(manifest, path));
  if (!found?.length) return null;
  return <Alert component="p" isInline isPlain variant="info" title={said.args(join(found))} />;
}
