/** A job from a file of the user's machine; nothing is sent before the job is created. */
import { Button } from "@patternfly/react-core";
import { UploadIcon } from "@patternfly/react-icons";
import { useRef } from "react";
import { words } from "../words";
import { useForm } from "./context";
import { LARGEST } from "./model/yamlText";

export function UploadYaml() {
  const { type } = useForm();
  const input = useRef<HTMLInputElement>(null);
  const read = async (file: File | undefined) => {
    // One character more than may be is enough to be refused.
    if (file) type(await file.slice(0, LARGEST + 1).text());
  };
  return (
    <div>
      <input
        ref={input}
        type="file"
        accept=".yaml,.yml,.json"
        hidden
        aria-label={words.create.yaml.upload}
        onChange={(event) => {
          void read(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      <Button variant="link" isInline icon={<UploadIcon />} onClick={() => input.current?.click()}>
        {words.create.yaml.upload}
      </Button>
    </div>
  );
}
