/** Files or a folder of the user's machine that travel with the job. */
import {
  Alert,
  Button,
  Flex,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
} from "@patternfly/react-core";
import { useRef } from "react";
import { useOneNamespace } from "../app/namespace";
import { usePermissions } from "../app/permissions";
import { words } from "../words";
import { useForm } from "./context";
import type { Upload } from "./server";

const said = words.create.program;
/** The server's own bound is on the packed folder; far beyond it, sending is pointless. */
const LARGEST = 16 * 1024 * 1024;

export function Code() {
  const { files, setFiles } = useForm();
  const may = usePermissions(useOneNamespace())("upload-code");
  const choose = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const size = files.reduce((sum, one) => sum + one.file.size, 0);
  const add = (input: HTMLInputElement) => {
    const added = [...(input.files ?? [])].map(upload);
    const names = new Set(added.map((one) => one.name));
    setFiles([...files.filter((one) => !names.has(one.name)), ...added]);
    input.value = "";
  };
  return (
    <FormGroup label={said.code} role="group">
      <input
        ref={choose}
        type="file"
        multiple
        hidden
        aria-label={said.chooseFiles}
        onChange={(event) => add(event.currentTarget)}
      />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label={said.chooseFolder}
        {...{ webkitdirectory: "" }}
        onChange={(event) => add(event.currentTarget)}
      />
      <Flex gap={{ default: "gapSm" }}>
        <Button
          variant="secondary"
          isDisabled={!may.allowed}
          onClick={() => choose.current?.click()}
        >
          {said.chooseFiles}
        </Button>
        <Button
          variant="secondary"
          isDisabled={!may.allowed}
          onClick={() => folder.current?.click()}
        >
          {said.chooseFolder}
        </Button>
        {files.length > 0 && (
          <Button variant="link" onClick={() => setFiles([])}>
            {said.removeFiles}
          </Button>
        )}
      </Flex>
      {files.length > 0 && <p>{said.files(files.length, bytes(size))}</p>}
      {size > LARGEST && (
        <Alert component="p" isInline variant="danger" title={said.tooLarge(bytes(LARGEST))} />
      )}
      <FormHelperText>
        <HelperText>
          <HelperTextItem>{may.allowed ? said.codeHelp : may.reason}</HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

/** Of a folder, the paths within it. */
function upload(file: File): Upload {
  const [, ...within] = (file.webkitRelativePath || "").split("/");
  return { name: within.length > 0 ? within.join("/") : file.name, file };
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  const kib = count / 1024;
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}
