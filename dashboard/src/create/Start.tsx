/** Where a job begins: a template, a runtime, or a file. */
import {
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Radio,
} from "@patternfly/react-core";
import { useState } from "react";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { type JsonObject, textAt } from "./model/json";
import { forRuntime, fromTemplate, LOCAL_IMAGE, type TemplateName } from "./model/newJob";
import { RUNTIME } from "./model/trainjob";
import type { RuntimeInfo } from "./server";
import { UploadYaml } from "./UploadYaml";

const said = words.create.start;
const TEMPLATES: readonly TemplateName[] = ["hello", "gpu", "intel", "empty"];

export function Start({
  begin,
  chosen,
  choose,
}: {
  begin: (manifest: JsonObject) => void;
  chosen: string;
  choose: (name: string) => void;
}) {
  const { draft, manifest, namespace, local, runtimes } = useForm();
  const [asked, setAsked] = useState<{ name: string; manifest: JsonObject } | null>(null);
  const start = (name: string, made: JsonObject) => {
    if (draft.changed) return setAsked({ name, manifest: made });
    choose(name);
    begin(made);
  };
  const template = (name: TemplateName) =>
    start(name, fromTemplate(name, namespace, local ? LOCAL_IMAGE : ""));
  const runtime = (one: RuntimeInfo) => start(`runtime ${one.name}`, forRuntime(one, namespace));
  const named = isTrainJob(manifest) ? `runtime ${textAt(manifest, RUNTIME)}` : chosen;
  return (
    <Form onSubmit={(event) => event.preventDefault()}>
      <FormGroup role="radiogroup" label={said.mpijob} isStack>
        {TEMPLATES.map((name) => (
          <Radio
            key={name}
            id={`template-${name}`}
            name="template"
            label={said[name].title}
            description={said[name].about}
            isChecked={named === name}
            onChange={() => template(name)}
          />
        ))}
      </FormGroup>
      <FormGroup role="radiogroup" label={said.trainjob} isStack>
        {runtimes.length === 0 && <p className="odh-muted">{said.noRuntimes}</p>}
        {runtimes.map((one) => (
          <Radio
            key={`${one.kind}/${one.name}`}
            id={`runtime-${one.kind}-${one.name}`}
            name="template"
            label={one.name}
            description={said.runtime(one.framework, one.numNodes)}
            isChecked={named === `runtime ${one.name}`}
            onChange={() => runtime(one)}
          />
        ))}
      </FormGroup>
      <UploadYaml />
      {asked && (
        <Modal
          isOpen
          variant="small"
          aria-labelledby="replace-title"
          aria-describedby="replace-body"
          onClose={() => setAsked(null)}
        >
          <ModalHeader title={said.replaceTitle} labelId="replace-title" />
          <ModalBody id="replace-body">{said.replaceBody}</ModalBody>
          <ModalFooter>
            <Button
              onClick={() => {
                choose(asked.name);
                begin(asked.manifest);
                setAsked(null);
              }}
            >
              {said.replace}
            </Button>
            <Button variant="link" onClick={() => setAsked(null)}>
              {said.keep}
            </Button>
          </ModalFooter>
        </Modal>
      )}
    </Form>
  );
}
