/** The job as its file, as a command, as a program, and what is made of it. */
import {
  Alert,
  Button,
  ClipboardCopy,
  Flex,
  FlexItem,
  Skeleton,
  Switch,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { useNavigate } from "react-router";
import { stringify } from "yaml";
import { ProblemError, request } from "../../api/client";
import type { Differences, Job, Rendered } from "../../api/types";
import { useAddress } from "../../app/address";
import { clonePath } from "../../app/paths";
import { usePermissions } from "../../app/permissions";
import { ProblemAlert } from "../../components/ProblemAlert";
import { download } from "../../logs/exportLines";
import { words } from "../../words";
import { type JobPlace, kindOf, placeNames } from "../place";
import type { JobTabProps } from "../tabs";
import { asWritten } from "./manifest";

const YamlView = lazy(() => import("./YamlView"));

const VIEWS = ["yaml", "cli", "sdk", "difference", "rendered"] as const;
type View = (typeof VIEWS)[number];

export default function ConfigurationTab({ place, job }: JobTabProps) {
  const [search, setSearch] = useAddress();
  const text = words.job.configuration;
  const view = VIEWS.find((one) => one === search.get("show")) ?? "yaml";
  const whole = search.get("whole") === "1";
  const written = useMemo(() => yamlOf(asWritten(job.manifest)), [job.manifest]);
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  return (
    <div className="odh-cards">
      <Flex alignItems={{ default: "alignItemsCenter" }}>
        <ToggleGroup aria-label={text.show}>
          {VIEWS.map((one) => (
            <ToggleGroupItem
              key={one}
              text={text.views[one]}
              isSelected={one === view}
              onChange={() => set("show", one === "yaml" ? "" : one)}
            />
          ))}
        </ToggleGroup>
        {view === "yaml" && (
          <Switch
            label={text.whole}
            isChecked={whole}
            onChange={(_, on) => set("whole", on ? "1" : "")}
          />
        )}
        <FlexItem align={{ default: "alignRight" }} className="odh-job-actions">
          <Edit place={place} />
          <Button
            variant="secondary"
            onClick={() =>
              download(new Blob([written], { type: "application/yaml" }), `${job.name}.yaml`)
            }
          >
            {text.download}
          </Button>
        </FlexItem>
      </Flex>
      <Shown place={place} job={job} view={view} whole={whole} written={written} />
    </div>
  );
}

function yamlOf(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}

function Edit({ place }: { place: JobPlace }) {
  const navigate = useNavigate();
  const may = usePermissions(place.namespace);
  const { allowed, reason } = may(
    place.kindPath === "mpijobs" ? "create-mpijobs" : "create-trainjobs",
  );
  return (
    <span title={reason || undefined}>
      <Button
        isAriaDisabled={!allowed}
        onClick={() => allowed && navigate(clonePath({ ...place, kind: kindOf(place) }))}
      >
        {words.job.configuration.edit}
      </Button>
    </span>
  );
}

interface ShownProps {
  readonly place: JobPlace;
  readonly job: Job;
  readonly view: View;
  readonly whole: boolean;
  readonly written: string;
}

function Shown({ place, job, view, whole, written }: ShownProps) {
  const text = words.job.configuration;
  if (view === "yaml") {
    return (
      <>
        <Yaml text={whole ? yamlOf(job.manifest) : written} label={text.editor} />
        <Copy content={whole ? yamlOf(job.manifest) : written} label={text.views.yaml} />
      </>
    );
  }
  if (view === "cli" || view === "sdk") return <Equivalent place={place} job={job} which={view} />;
  if (view === "rendered") return <Made place={place} job={job} />;
  return <DifferenceView place={place} job={job} />;
}

function Yaml({ text, label }: { text: string; label: string }) {
  return (
    <Suspense
      fallback={<Skeleton height="20rem" screenreaderText={words.job.configuration.reading} />}
    >
      <YamlView text={text} label={label} />
    </Suspense>
  );
}

function Copy({ content, label }: { content: string; label: string }) {
  const text = words.job.configuration;
  return (
    <Button
      variant="link"
      onClick={() => void navigator.clipboard?.writeText(content)}
      aria-label={`${text.copy}: ${label}`}
    >
      {text.copy}
    </Button>
  );
}

function Equivalent({ place, job, which }: { place: JobPlace; job: Job; which: "cli" | "sdk" }) {
  const text = words.job.configuration;
  const path = `/api/v1/namespaces/{namespace}/${place.kindPath}/{name}/equivalents`;
  const found = useQuery({
    queryKey: ["equivalents", place.namespace, place.kindPath, place.name, job.uid],
    queryFn: ({ signal }) =>
      request("GET", path, { path: placeNames(place), signal }) as Promise<Record<string, string>>,
  });
  if (found.error instanceof ProblemError && found.error.problem.type.endsWith("no-path")) {
    return <Alert component="h2" isInline variant="info" title={text.noEquivalents} />;
  }
  if (found.error) return <ProblemAlert title={text.failed} error={found.error} />;
  if (!found.data) return <Skeleton height="6rem" screenreaderText={text.reading} />;
  return (
    <ClipboardCopy
      isReadOnly
      isCode
      isExpanded
      variant="expansion"
      hoverTip={text.copy}
      clickTip={text.copied}
      textAriaLabel={text.views[which]}
      toggleAriaLabel={text.views[which]}
    >
      {found.data[which] ?? ""}
    </ClipboardCopy>
  );
}

/** What the server makes of the job as it was written. */
function usePlan<T>(place: JobPlace, job: Job, what: "render" | "diff") {
  return useQuery({
    queryKey: ["plan", what, place.namespace, place.kindPath, place.name, job.uid],
    queryFn: ({ signal }) =>
      request("POST", `/api/v1/namespaces/{namespace}/plan/${what}`, {
        path: { namespace: place.namespace },
        body: asWritten(job.manifest),
        signal,
      }) as Promise<T>,
  });
}

function Made({ place, job }: { place: JobPlace; job: Job }) {
  const text = words.job.configuration;
  const found = usePlan<Rendered>(place, job, "render");
  if (found.error) return <ProblemAlert title={text.failed} error={found.error} />;
  if (!found.data) return <Skeleton height="20rem" screenreaderText={text.reading} />;
  const all = found.data.items.map(yamlOf).join("---\n");
  return <Yaml text={all} label={text.views.rendered} />;
}

function DifferenceView({ place, job }: { place: JobPlace; job: Job }) {
  const text = words.job.configuration;
  const found = usePlan<Differences>(place, job, "diff");
  if (found.error) return <ProblemAlert title={text.failed} error={found.error} />;
  if (!found.data) return <Skeleton height="20rem" screenreaderText={text.reading} />;
  if (found.data.items.length === 0) {
    return <Alert component="h2" isInline variant="success" title={text.noDifference} />;
  }
  return (
    <>
      {found.data.items.map((one) => (
        <section key={`${one.kind} ${one.name}`}>
          <h2>
            {one.kind} {one.name}: {one.state}
          </h2>
          <Table variant="compact" aria-label={`${one.kind} ${one.name}`}>
            <Thead>
              <Tr>
                <Th>{text.differs.field}</Th>
                <Th>{text.differs.cluster}</Th>
                <Th>{text.differs.file}</Th>
              </Tr>
            </Thead>
            <Tbody>
              {one.changes.map((change) => (
                <Tr key={change.field}>
                  <Td dataLabel={text.differs.field} className="odh-breaks">
                    {change.field}
                  </Td>
                  <Td dataLabel={text.differs.cluster} className="odh-breaks">
                    {shown(change.cluster)}
                  </Td>
                  <Td dataLabel={text.differs.file} className="odh-breaks">
                    {shown(change.file)}
                  </Td>
                </Tr>
              ))}
            </Tbody>
          </Table>
        </section>
      ))}
    </>
  );
}

function shown(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value);
}
