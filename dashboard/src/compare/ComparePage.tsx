/** Two to four jobs side by side; which ones is in the address. */
import {
  Button,
  Card,
  CardBody,
  CardTitle,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  PageSection,
  Skeleton,
  Switch,
  TextInput,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQueries } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { ProblemError, request } from "../api/client";
import type { Job, JobStatus } from "../api/types";
import { type JobRef, jobKey, jobOfKey, jobPath, paths } from "../app/paths";
import { useNow } from "../components/Ago";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { StatusLabel } from "../components/StatusLabel";
import { duration } from "../components/time";
import { asWritten } from "../job/configuration/manifest";
import { SeriesTable, titleOf } from "../job/metrics/SeriesTable";
import type { History } from "../job/metrics/usage";
import { kindOf } from "../job/place";
import { ran } from "../job/situation";
import "../job/job.css";
import { words } from "../words";
import { differences } from "./difference";
import { overlay } from "./overlay";

const Chart = lazy(() => import("../job/metrics/Chart"));

const MOST = 4;
const EVERY_MS = 5_000;

type Chosen = NonNullable<ReturnType<typeof jobOfKey>>;

interface Found {
  readonly ref: Chosen;
  readonly job: Job;
  readonly status: JobStatus;
}

export default function ComparePage() {
  const [search, setSearch] = useSearchParams();
  const keys = (search.get("jobs") ?? "").split(",").filter(Boolean).slice(0, MOST);
  const chosen = keys.map(jobOfKey).filter((one) => one !== null);
  const text = words.compare;
  const set = (jobs: readonly JobRef[]) =>
    setSearch(jobs.length > 0 ? { jobs: jobs.map(jobKey).join(",") } : {});
  return (
    <>
      <PageHeading title={text.title} about={text.about} />
      <PageSection hasBodyWrapper={false}>
        <Add
          full={chosen.length >= MOST}
          onAdd={(one) => set([...chosen.filter((each) => jobKey(each) !== jobKey(one)), one])}
        />
        {chosen.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={text.none}>
            <EmptyStateBody>{text.choose}</EmptyStateBody>
            <EmptyStateFooter>
              <EmptyStateActions>
                <Link to={paths.jobs}>{text.toJobs}</Link>
              </EmptyStateActions>
            </EmptyStateFooter>
          </EmptyState>
        ) : (
          <Compared
            chosen={chosen}
            onRemove={(one) => set(chosen.filter((each) => jobKey(each) !== jobKey(one)))}
          />
        )}
      </PageSection>
    </>
  );
}

function Add({ full, onAdd }: { full: boolean; onAdd: (job: Chosen) => void }) {
  const [typed, setTyped] = useState("");
  const [wrong, setWrong] = useState(false);
  const text = words.compare;
  if (full) return <p className="odh-muted">{text.most}</p>;
  return (
    <Form
      onSubmit={(event) => {
        event.preventDefault();
        const found = jobOfKey(typed.trim());
        setWrong(!found);
        if (!found) return;
        onAdd(found);
        setTyped("");
      }}
    >
      <FormGroup label={text.add} fieldId="odh-compare-add">
        <div className="odh-job-actions">
          <TextInput
            id="odh-compare-add"
            value={typed}
            placeholder={text.addExample}
            validated={wrong ? "error" : "default"}
            onChange={(_, value) => setTyped(value)}
          />
          <Button type="submit" variant="secondary">
            {text.addButton}
          </Button>
        </div>
        {wrong && (
          <FormHelperText>
            <HelperText isLiveRegion>
              <HelperTextItem variant="error">{text.addWrong}</HelperTextItem>
            </HelperText>
          </FormHelperText>
        )}
      </FormGroup>
    </Form>
  );
}

function Compared({
  chosen,
  onRemove,
}: {
  chosen: readonly Chosen[];
  onRemove: (job: Chosen) => void;
}) {
  const found = useQueries({
    queries: chosen.map((ref) => ({
      queryKey: ["compare", jobKey(ref)],
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Found> => {
        const path = `/api/v1/namespaces/{namespace}/${ref.kindPath}/{name}`;
        const options = { path: { namespace: ref.namespace, name: ref.name }, signal };
        const [job, status] = await Promise.all([
          request("GET", path, options) as Promise<Job>,
          request("GET", `${path}/status`, options) as Promise<JobStatus>,
        ]);
        return { ref, job, status };
      },
      refetchInterval: EVERY_MS,
    })),
  });
  const known = found.flatMap((one) => (one.data ? [one.data] : []));
  return (
    <div className="odh-cards">
      {found.map((one, index) => {
        const ref = chosen[index];
        if (!ref || !one.error || one.data) return null;
        const title = words.compare.failed(ref.name);
        return <ProblemAlert key={jobKey(ref)} title={title} error={one.error} />;
      })}
      {known.length === 0 && found.some((one) => one.isPending) && (
        <Skeleton height="16rem" screenreaderText={words.job.loading} />
      )}
      {known.length > 0 && (
        <>
          <Results found={known} onRemove={onRemove} />
          <Configurations found={known} />
          <Overlay found={known} />
        </>
      )}
    </div>
  );
}

function Results({
  found,
  onRemove,
}: {
  found: readonly Found[];
  onRemove: (job: Chosen) => void;
}) {
  const now = useNow(5_000);
  const text = words.compare;
  const rows: [string, (one: Found) => ReactNode][] = [
    [text.rows.state, ({ job }) => <StatusLabel state={job.state} />],
    [text.rows.ran, ({ job }) => duration(ran(job, now) ?? 0)],
    [text.rows.workers, ({ job }) => job.workers],
    [text.rows.ranks, ({ job }) => job.workers * job.slots],
    [text.rows.progress, ({ status }) => progressOf(status)],
  ];
  return (
    <Card>
      <CardTitle component="h2">{text.result}</CardTitle>
      <CardBody>
        <Table variant="compact" aria-label={text.result}>
          <Thead>
            <Tr>
              <Th screenReaderText={text.field} />
              {found.map(({ ref }) => (
                <Th key={jobKey(ref)} modifier="breakWord">
                  <Link to={jobPath({ ...ref, kind: kindOf(ref) })}>{ref.name}</Link>{" "}
                  <Button
                    variant="plain"
                    size="sm"
                    aria-label={text.remove(ref.name)}
                    onClick={() => onRemove(ref)}
                  >
                    ×
                  </Button>
                </Th>
              ))}
            </Tr>
          </Thead>
          <Tbody>
            {rows.map(([name, value]) => (
              <Tr key={name}>
                <Th scope="row">{name}</Th>
                {found.map((one) => (
                  <Td key={jobKey(one.ref)} dataLabel={one.ref.name}>
                    {value(one)}
                  </Td>
                ))}
              </Tr>
            ))}
          </Tbody>
        </Table>
      </CardBody>
    </Card>
  );
}

function progressOf(status: JobStatus): string {
  const { progress } = status;
  if (!progress || progress.step === null) return "";
  return words.job.progress.of(progress.unit, progress.step, progress.total);
}

function Configurations({ found }: { found: readonly Found[] }) {
  const [only, setOnly] = useState(true);
  const text = words.compare;
  const rows = differences(found.map(({ job }) => specOf(job)));
  const shown = only ? rows.filter((one) => one.differs) : rows;
  return (
    <Card>
      <CardTitle component="h2">{text.spec}</CardTitle>
      <CardBody>
        <Switch label={text.differsOnly} isChecked={only} onChange={(_, on) => setOnly(on)} />
        {shown.length === 0 ? (
          <p>{text.same}</p>
        ) : (
          <Table variant="compact" aria-label={text.spec}>
            <Thead>
              <Tr>
                <Th>{text.field}</Th>
                {found.map(({ ref }) => (
                  <Th key={jobKey(ref)} modifier="breakWord">
                    {ref.name}
                  </Th>
                ))}
              </Tr>
            </Thead>
            <Tbody>
              {shown.map((row) => (
                <Tr key={row.field}>
                  <Th scope="row" modifier="breakWord">
                    {row.differs ? <strong>{parts(row.field)}</strong> : parts(row.field)}
                  </Th>
                  {found.map(({ ref }, index) => (
                    <Td key={jobKey(ref)} dataLabel={ref.name} className="odh-breaks">
                      {row.values[index] ?? <span className="odh-muted">{text.absent}</span>}
                    </Td>
                  ))}
                </Tr>
              ))}
            </Tbody>
          </Table>
        )}
      </CardBody>
    </Card>
  );
}

/** A field that is broken into lines after its dots. */
function parts(field: string): ReactNode[] {
  return field
    .split(/(?<=\.)/)
    .flatMap((part, at) => (at === 0 ? part : [<wbr key={part} />, part]));
}

function specOf(job: Job): unknown {
  const written = asWritten(job.manifest);
  return { kind: job.kind, spec: written.spec };
}

function Overlay({ found }: { found: readonly Found[] }) {
  const text = words.compare;
  const histories = useQueries({
    queries: found.map(({ ref, job }) => ({
      queryKey: ["history", jobKey(ref), job.uid, job.state],
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<History> => {
        const path = `/api/v1/namespaces/{namespace}/${ref.kindPath}/{name}/metrics/history`;
        const names = { namespace: ref.namespace, name: ref.name };
        try {
          return (await request("GET", path, { path: names, signal })) as History;
        } catch (error) {
          if (!(error instanceof ProblemError && error.status === 404)) throw error;
          return { series: [], source: "", notes: [] };
        }
      },
    })),
  });
  if (histories.some((one) => one.isPending)) return <Skeleton height="220px" />;
  const charts = overlay(
    histories.map((one, index) => ({
      job: found[index]?.ref.name ?? "",
      series: one.data?.series ?? [],
    })),
  );
  return (
    <Card>
      <CardTitle component="h2">{text.metrics}</CardTitle>
      <CardBody>
        {charts.length === 0 && <p>{text.noMetrics}</p>}
        {charts.map(({ name, series }) => (
          <section key={name} aria-label={titleOf(name)}>
            <h3>{titleOf(name)}</h3>
            <Suspense fallback={<Skeleton height="220px" />}>
              <Chart title={titleOf(name)} series={series} clock={false} />
            </Suspense>
            <SeriesTable name={name} series={series} />
          </section>
        ))}
      </CardBody>
    </Card>
  );
}
