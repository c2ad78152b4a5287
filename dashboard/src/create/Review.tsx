/** The job once more, what is wrong with it, and the same as a command, a program and a file. */
import {
  Alert,
  Button,
  ClipboardCopy,
  ClipboardCopyVariant,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  List,
  ListItem,
  Spinner,
  Tab,
  Tabs,
  TabTitleText,
  Title,
  useWizardContext,
} from "@patternfly/react-core";
import { useState } from "react";
import { ProblemAlert } from "../components/ProblemAlert";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { textAt } from "./model/json";
import * as mpijob from "./model/mpijob";
import { type Problem, stepOf } from "./model/problems";
import * as trainjob from "./model/trainjob";
import { join, unescaped } from "./model/words";
import { Shortages } from "./Shortages";
import { refusal, useEquivalents } from "./server";

const said = words.create.review;

export function Review({ focus, failure }: { focus: (field: string) => void; failure: unknown }) {
  const { checked, manifest, refused } = useForm();
  const { goToStepById } = useWizardContext();
  const goTo = (field: string) => {
    goToStepById(stepOf(field));
    focus(field);
  };
  const all = [...refused, ...checked.problems];
  const errors = all.filter((one) => one.level === "error");
  const warnings = all.filter((one) => one.level === "warning");
  const current = checked.of === manifest;
  return (
    <div className="odh-create-review">
      {failure !== null && !refusal(failure) && (
        <ProblemAlert title={said.refused} error={failure} />
      )}
      <div aria-live="polite">
        {!current && <Spinner size="md" aria-label={said.checking} />}
        {current && checked.failed !== null && (
          <ProblemAlert title={said.failed} error={checked.failed} />
        )}
        {errors.length > 0 && (
          <Found title={said.errors(errors.length)} problems={errors} goTo={goTo} />
        )}
        {warnings.length > 0 && (
          <Found title={said.warnings(warnings.length)} problems={warnings} goTo={goTo} />
        )}
        {current && checked.failed === null && failure === null && errors.length === 0 && (
          <Alert component="p" isInline variant="success" title={said.fine} />
        )}
      </div>
      <Shortages />
      <Title headingLevel="h2" size="lg">
        {said.summary}
      </Title>
      <Summary />
      <Title headingLevel="h2" size="lg">
        {said.same}
      </Title>
      <Same sound={current && errors.length === 0 && checked.failed === null} />
    </div>
  );
}

function Found({
  title,
  problems,
  goTo,
}: {
  title: string;
  problems: readonly Problem[];
  goTo: (field: string) => void;
}) {
  const level = problems[0]?.level === "warning" ? "warning" : "danger";
  return (
    <Alert component="p" isInline variant={level} title={title}>
      <List>
        {problems.map((one) => (
          <ListItem key={one.field + one.text}>
            {one.field && (
              <>
                <Button
                  variant="link"
                  isInline
                  aria-label={said.goTo(one.field)}
                  onClick={() => goTo(one.field)}
                >
                  {one.field}
                </Button>
                {": "}
              </>
            )}
            {one.text}
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}

function Summary() {
  const { manifest, namespace, runtime } = useForm();
  const train = isTrainJob(manifest);
  const command = train ? trainjob.command(manifest, runtime) : mpijob.command(manifest);
  const image = train
    ? textAt(manifest, trainjob.IMAGE) || trainjob.imageOf(runtime)
    : mpijob.image(manifest).image;
  const nodes = mpijob.number(manifest, trainjob.NODES) ?? runtime?.numNodes ?? 1;
  const processes = mpijob.number(manifest, trainjob.PROCESSES) ?? trainjob.processesOf(runtime);
  const ranks = train
    ? words.create.review.of(nodes, processes, nodes * processes)
    : said.of(mpijob.workers(manifest), mpijob.slots(manifest), mpijob.ranks(manifest));
  const lines: [string, string][] = [
    [said.kind, textAt(manifest, ["kind"])],
    [words.create.basics.name, textAt(manifest, ["metadata", "name"])],
    [words.create.basics.project, namespace],
    ...(train
      ? ([[words.create.basics.runtime, textAt(manifest, trainjob.RUNTIME)]] as [string, string][])
      : []),
    [words.create.program.image, image],
    [words.create.program.whole, join(command.whole.map((word) => unescaped(word) ?? word))],
    [words.create.resources.workers, ranks],
    [words.create.advanced.queue, mpijob.queue(manifest) || said.nothing],
  ];
  return (
    <DescriptionList isHorizontal isCompact>
      {lines.map(([term, text]) => (
        <DescriptionListGroup key={term}>
          <DescriptionListTerm>{term}</DescriptionListTerm>
          <DescriptionListDescription className="odh-create-value">
            {text || said.nothing}
          </DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

function Same({ sound }: { sound: boolean }) {
  const { manifest, namespace } = useForm();
  const [form, setForm] = useState<"cli" | "sdk" | "yaml">("cli");
  const { data, error } = useEquivalents(namespace, manifest, sound);
  if (error) return <ProblemAlert title={said.noSame} error={error} />;
  if (!sound || !data) return <Content component="p">{said.noEquivalents}</Content>;
  return (
    <Tabs
      activeKey={form}
      aria-label={said.same}
      onSelect={(_event, key) => setForm(key as "cli" | "sdk" | "yaml")}
    >
      {(["cli", "sdk", "yaml"] as const).map((key) => (
        <Tab key={key} eventKey={key} title={<TabTitleText>{said[key]}</TabTitleText>}>
          <ClipboardCopy
            isReadOnly
            isCode
            isExpanded
            variant={ClipboardCopyVariant.expansion}
            hoverTip={said.copy}
            clickTip={said.copied}
            textAriaLabel={said[key]}
            toggleAriaLabel={said[key]}
          >
            {data[key]}
          </ClipboardCopy>
        </Tab>
      ))}
    </Tabs>
  );
}
