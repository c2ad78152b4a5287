/** A refusal in the server's words, which are those of `odh`: what is wrong, and what to do. */
import { Alert, Button, List, ListItem } from "@patternfly/react-core";
import { ProblemError, ServerGone } from "../api/client";
import { words } from "../words";
import { Said } from "./Said";

export function problemText(error: unknown): string {
  if (error instanceof ProblemError) {
    const { detail, hint } = error.problem;
    return hint ? `${sentence(detail)} ${hint}` : sentence(detail);
  }
  if (error instanceof ServerGone) return words.problems.gone;
  return error instanceof Error ? error.message : String(error);
}

export function ProblemAlert({
  title,
  error,
  retry,
}: {
  title: string;
  error: unknown;
  retry?: () => void;
}) {
  const problem = error instanceof ProblemError ? error.problem : null;
  return (
    <Alert
      component="p"
      isInline
      variant={error instanceof ServerGone ? "warning" : "danger"}
      title={title}
      actionLinks={
        retry && (
          <Button variant="link" isInline onClick={retry}>
            {words.problems.retry}
          </Button>
        )
      }
    >
      <p>
        <Said>{problemText(error)}</Said>
      </p>
      {!!problem?.errors?.length && (
        <List>
          {problem.errors.map((one) => (
            <ListItem key={`${one.field} ${one.message}`}>
              <code>{one.field}</code>:{" "}
              <Said>{one.remedy ? `${one.message} — ${one.remedy}` : one.message}</Said>
            </ListItem>
          ))}
        </List>
      )}
    </Alert>
  );
}

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
