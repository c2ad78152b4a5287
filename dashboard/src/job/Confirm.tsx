import {
  Button,
  Form,
  FormGroup,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextInput,
} from "@patternfly/react-core";
import { useState } from "react";
import { words } from "../words";

interface Props {
  readonly action: "suspend" | "restart" | "delete";
  readonly name: string;
  readonly busy: boolean;
  readonly onCancel: () => void;
  readonly onConfirm: () => void;
}

/** Asks before anything is lost; a deletion wants the job's name typed. */
export function Confirm({ action, name, busy, onCancel, onConfirm }: Props) {
  const [typed, setTyped] = useState("");
  const text = words.job.confirm;
  const ready = action !== "delete" || typed === name;
  const body = action === "delete" ? text.deleteBody(name) : text[`${action}Body`];
  return (
    <Modal isOpen variant="small" onClose={onCancel} aria-labelledby="odh-confirm">
      <ModalHeader
        title={text[`${action}Title`]}
        labelId="odh-confirm"
        titleIconVariant={action === "delete" ? "warning" : undefined}
      />
      <ModalBody>
        <p>{body}</p>
        {action === "delete" && (
          <Form
            onSubmit={(event) => {
              event.preventDefault();
              if (ready && !busy) onConfirm();
            }}
          >
            <FormGroup label={text.type(name)} fieldId="odh-confirm-name">
              <TextInput
                id="odh-confirm-name"
                value={typed}
                autoComplete="off"
                onChange={(_, value) => setTyped(value)}
              />
            </FormGroup>
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        <Button
          variant={action === "delete" ? "danger" : "primary"}
          isDisabled={!ready || busy}
          isLoading={busy}
          onClick={onConfirm}
        >
          {words.job.actions[action]}
        </Button>
        <Button variant="link" onClick={onCancel}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
