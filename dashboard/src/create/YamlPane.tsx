/** The job as YAML beside the form; whatever is typed here goes into the form. */
import { Alert, Button, Flex, Spinner, Title } from "@patternfly/react-core";
import { lazy, Suspense, useDeferredValue, useMemo, useState } from "react";
import { words } from "../words";
import { useForm } from "./context";
import { pathOf } from "./model/problems";
import { type Fault, offsetOf } from "./model/yamlText";
import { UploadYaml } from "./UploadYaml";
import type { Mark } from "./YamlEditor";

const YamlEditor = lazy(() => import("./YamlEditor"));
const said = words.create.yaml;

export function YamlPane() {
  const { draft, type } = useForm();
  const [open, setOpen] = useState(true);
  const marks = useMarks();
  return (
    <section className="odh-create-yaml" aria-label={said.title}>
      <Flex justifyContent={{ default: "justifyContentSpaceBetween" }}>
        <Title headingLevel="h2" size="md">
          {said.title}
        </Title>
        <Flex gap={{ default: "gapMd" }}>
          <UploadYaml />
          <Button
            variant="link"
            isInline
            aria-expanded={open}
            onClick={() => setOpen((before) => !before)}
          >
            {open ? said.hide : said.show}
          </Button>
        </Flex>
      </Flex>
      {draft.fault && (
        <Alert component="p" isInline variant="danger" title={said.stands} isLiveRegion>
          {faultText(draft.fault)}
        </Alert>
      )}
      {open && (
        <Suspense fallback={<Spinner aria-label={said.loading} />}>
          <YamlEditor text={draft.text} label={said.editor} marks={marks} onChange={type} />
        </Suspense>
      )}
    </section>
  );
}

/** What the server says, at the lines that it is about. */
function useMarks(): readonly Mark[] {
  const { draft, checked, refused } = useForm();
  const text = useDeferredValue(draft.text);
  const problems = checked.problems;
  return useMemo(
    () =>
      draft.fault
        ? []
        : [...refused, ...problems].slice(0, 20).map((one) => ({
            from: offsetOf(text, pathOf(one.field)),
            severity: one.level,
            message: one.text,
          })),
    [text, problems, refused, draft.fault],
  );
}

export function faultText(fault: Fault): string {
  if (fault.kind === "size") return said.faults.size(fault.most);
  if (fault.kind === "syntax") return said.faults.syntax(fault.line, fault.column, fault.text);
  return said.faults[fault.kind];
}
