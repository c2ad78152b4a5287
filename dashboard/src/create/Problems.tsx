/** What the server says of fields that have no input of their own to say it at. */
import { HelperText, HelperTextItem } from "@patternfly/react-core";
import { Said as Sentence } from "../components/Said";
import { useProblems } from "./context";
import type { Path } from "./model/json";

export function Said({ paths }: { paths: readonly Path[] }) {
  const problems = useProblems(paths);
  if (problems.length === 0) return null;
  return (
    <HelperText isLiveRegion>
      {problems.map((one) => (
        <HelperTextItem
          key={one.field + one.text}
          variant={one.level === "error" ? "error" : "warning"}
        >
          {one.field}: <Sentence>{one.text}</Sentence>
        </HelperTextItem>
      ))}
    </HelperText>
  );
}
