/**
 * In the place of an answer that is to come; says why it never will where what a page asks about
 * first, its namespace, cannot be known.
 */
import { Bullseye, Spinner } from "@patternfly/react-core";
import { ProblemAlert } from "../components/ProblemAlert";
import { words } from "../words";
import { useNamespaces, useOneNamespace } from "./namespace";

interface Asked {
  readonly isError: boolean;
  readonly error: unknown;
  readonly refetch: () => Promise<unknown>;
}

/** `first` is what else has to be known before the answer is asked for. */
export function Loading({ first = [] }: { first?: readonly Asked[] }) {
  const namespace = useOneNamespace();
  const namespaces = useNamespaces();
  const failed = [...first, ...(namespace ? [] : [namespaces])].find((one) => one.isError);
  if (failed) {
    return (
      <ProblemAlert
        title={words.shell.unanswered}
        error={failed.error}
        retry={() => void failed.refetch()}
      />
    );
  }
  return (
    <Bullseye>
      <Spinner aria-label={words.shell.loading} />
    </Bullseye>
  );
}
