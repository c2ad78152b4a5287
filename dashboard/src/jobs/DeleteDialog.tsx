import {
  Alert,
  Button,
  List,
  ListItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from "@patternfly/react-core";
import { words } from "../words";
import { type ActedOn, isFinished } from "./actions";

const NAMED = 8;

/** Asks before jobs are deleted: which, and what ends with them. */
export function DeleteDialog({
  jobs,
  onClose,
  onDelete,
}: {
  jobs: readonly ActedOn[];
  onClose: () => void;
  onDelete: () => void;
}) {
  const text = words.jobs.deleting;
  const running = jobs.filter((job) => !isFinished(job)).length;
  return (
    <Modal isOpen variant="small" onClose={onClose} aria-labelledby="delete-title">
      <ModalHeader
        title={text.title(jobs.length)}
        labelId="delete-title"
        titleIconVariant="warning"
      />
      <ModalBody>
        <List isPlain>
          {jobs.slice(0, NAMED).map((job) => (
            <ListItem key={`${job.kind}/${job.namespace}/${job.name}`}>
              <strong className="odh-anywhere">{job.name}</strong> ({job.namespace})
            </ListItem>
          ))}
          {jobs.length > NAMED && <ListItem>{text.more(jobs.length - NAMED)}</ListItem>}
        </List>
        <p className="odh-above">{text.gone}</p>
        {running > 0 && (
          <Alert component="p" isInline isPlain variant="warning" title={text.running(running)} />
        )}
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" onClick={onDelete}>
          {text.confirm}
        </Button>
        <Button variant="link" onClick={onClose}>
          {words.jobs.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
