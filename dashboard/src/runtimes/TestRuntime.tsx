/** Test Runtime (RT-1): a small job of two pods shows whether the runtime works here. */
import {
  Alert,
  Button,
  Content,
  ExpandableSection,
  Label,
  Spinner,
  Title,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useEffect, useRef, useState } from "react";
import { usePermissions } from "../app/permissions";
import { ProblemAlert } from "../components/ProblemAlert";
import { Said } from "../components/Said";
import type { RuntimeInfo } from "../create/server";
import { words } from "../words";
import { type TestReport, type TestStep, tested } from "./server";

const said = words.runtimes.test;

type State =
  | { is: "idle" }
  | { is: "running" }
  | { is: "done"; report: TestReport }
  | { is: "failed"; error: unknown };

/** The test ends when nobody waits for it any more: the server removes its job. */
function useTest(runtime: RuntimeInfo, namespace: string) {
  const [state, setState] = useState<State>({ is: "idle" });
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const stop = () => {
    running.current?.abort();
    running.current = null;
    setState({ is: "idle" });
  };
  const start = () => {
    if (running.current) return;
    const abort = new AbortController();
    running.current = abort;
    setState({ is: "running" });
    const { name, kind } = runtime;
    tested({ namespace, name, kind, smokeRun: true }, abort.signal)
      .then((report): State => ({ is: "done", report }))
      .catch((error: unknown): State => ({ is: "failed", error }))
      .then((next) => {
        if (abort.signal.aborted) return;
        running.current = null;
        setState(next);
      });
  };
  return { state, start, stop };
}

export function TestRuntime({ runtime, namespace }: { runtime: RuntimeInfo; namespace: string }) {
  const may = usePermissions(namespace)("test-runtimes");
  const { state, start, stop } = useTest(runtime, namespace);
  return (
    <section aria-label={said.title} className="odh-runtime">
      <Title headingLevel="h2" size="lg">
        {said.title}
      </Title>
      <Content component="p">{may.allowed ? said.about : may.reason}</Content>
      <div>
        {state.is === "running" ? (
          <Button variant="secondary" onClick={stop}>
            {said.cancel}
          </Button>
        ) : (
          <Button variant="secondary" isDisabled={!may.allowed} onClick={start}>
            {state.is === "idle" ? said.run : said.again}
          </Button>
        )}
      </div>
      <div aria-live="polite">
        {state.is === "running" && (
          <p>
            <Spinner isInline aria-label={said.title} /> {said.running}
          </p>
        )}
        {state.is === "failed" && <ProblemAlert title={said.failed} error={state.error} />}
        {state.is === "done" && <Report report={state.report} />}
      </div>
    </section>
  );
}

function Report({ report }: { report: TestReport }) {
  return (
    <>
      <Alert
        isInline
        component="p"
        variant={report.passed ? "success" : "danger"}
        title={report.summary}
      >
        {said.seconds(report.seconds)}
      </Alert>
      <Steps steps={report.steps} label={said.steps} />
      <ExpandableSection toggleText={said.text}>
        <pre className="odh-runtime-yaml">{report.text}</pre>
      </ExpandableSection>
    </>
  );
}

export function Steps({ steps, label }: { steps: readonly TestStep[]; label: string }) {
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          <Th>{said.step}</Th>
          <Th>{said.result}</Th>
          <Th>{said.detail}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {steps.map((one) => (
          <Tr key={one.name}>
            <Td dataLabel={said.step}>{one.name}</Td>
            <Td dataLabel={said.result}>
              <Result passed={one.passed} />
            </Td>
            <Td dataLabel={said.detail} modifier="breakWord">
              <Said>{one.detail}</Said>
              {one.remedy && (
                <div>
                  <Said>{one.remedy}</Said>
                </div>
              )}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function Result({ passed }: { passed: boolean | null }) {
  if (passed === null)
    return (
      <Label isCompact variant="outline">
        {said.skipped}
      </Label>
    );
  return (
    <Label isCompact variant="outline" status={passed ? "success" : "danger"}>
      {passed ? said.passed : said.wrong}
    </Label>
  );
}
