/** What the program says of itself and what its pods use, over time. */
import {
  Alert,
  Card,
  CardBody,
  CardTitle,
  EmptyState,
  EmptyStateBody,
  Flex,
  List,
  ListItem,
  Skeleton,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { ExternalLinkAltIcon } from "@patternfly/react-icons";
import { lazy, Suspense } from "react";
import { useSearchParams } from "react-router";
import { useAbout } from "../../app/UserName";
import { ProblemAlert } from "../../components/ProblemAlert";
import { Said } from "../../components/Said";
import { words } from "../../words";
import { finished } from "../situation";
import type { JobTabProps } from "../tabs";
import { grafanaOf } from "./grafana";
import { SeriesTable, titleOf, USAGE } from "./SeriesTable";
import { straggler } from "./straggler";
import { type Series, useHistory, useUsage } from "./usage";

const Chart = lazy(() => import("./Chart"));

export default function MetricsTab({ place, job }: JobTabProps) {
  const running = !finished(job);
  const usage = useUsage(place, running);
  const history = useHistory(place, 60, running);
  const [search, setSearch] = useSearchParams();
  const text = words.job.metrics;
  if (usage.error)
    return <ProblemAlert title={text.failed} error={usage.error} retry={usage.retry} />;
  if (!usage.now || history.isPending) {
    return <Skeleton height="16rem" screenreaderText={words.job.loading} />;
  }
  const table = search.get("show") === "table";
  const show = (what: string) => setSearch(what ? { show: what } : {}, { replace: true });
  const series = together(history.data?.series ?? [], usage.history.series());
  const groups = grouped(series);
  const late = straggler(series);
  const notes = [...new Set([...usage.now.notes, ...(history.data?.notes ?? [])])];
  return (
    <div className="odh-cards">
      {late && (
        <Alert component="h2" isInline variant="warning" title={text.stragglerTitle}>
          {text.straggler(words.job.rank(Number(late.who)), late.percent)}
        </Alert>
      )}
      {history.error ? <ProblemAlert title={text.failed} error={history.error} /> : null}
      {groups.length === 0 ? (
        <EmptyState headingLevel="h2" titleText={text.none}>
          <EmptyStateBody>{text.noneHelp}</EmptyStateBody>
        </EmptyState>
      ) : (
        <Flex>
          <ToggleGroup aria-label={text.show}>
            <ToggleGroupItem text={text.chart} isSelected={!table} onChange={() => show("")} />
            <ToggleGroupItem text={text.table} isSelected={table} onChange={() => show("table")} />
          </ToggleGroup>
        </Flex>
      )}
      {groups.map(({ name, series: found }) => (
        <Card key={name}>
          <CardTitle component="h2">{titleOf(name)}</CardTitle>
          <CardBody>
            {table ? (
              <SeriesTable name={name} series={found} />
            ) : (
              <Suspense fallback={<Skeleton height="220px" />}>
                <Chart title={titleOf(name)} series={found} />
              </Suspense>
            )}
          </CardBody>
        </Card>
      ))}
      <Elsewhere place={place} />
      <Notes notes={notes} source={history.data?.source || usage.now.source} />
    </div>
  );
}

/** What the server keeps, and of the rest what this page has seen. */
function together(kept: readonly Series[], seen: readonly Series[]): Series[] {
  const names = new Set(kept.filter((one) => one.points.length > 0).map((one) => one.name));
  return [
    ...kept.filter((one) => one.points.length > 0),
    ...seen.filter((one) => !names.has(one.name)),
  ];
}

export function grouped(series: readonly Series[]): { name: string; series: Series[] }[] {
  const found = new Map<string, Series[]>();
  for (const one of series) found.set(one.name, [...(found.get(one.name) ?? []), one]);
  const place = (name: string) => (USAGE.includes(name) ? USAGE.indexOf(name) + 1 : 0);
  return [...found]
    .map(([name, list]) => ({ name, series: list }))
    .sort((a, b) => place(a.name) - place(b.name) || a.name.localeCompare(b.name));
}

/** Where the server names a Grafana; its dashboard is about MPIJobs. */
function Elsewhere({ place }: { place: JobTabProps["place"] }) {
  const { data } = useAbout();
  const url = place.kindPath === "mpijobs" ? grafanaOf(data?.grafana ?? "", place) : "";
  if (!url) return null;
  return (
    <p>
      <a href={url} target="_blank" rel="noopener noreferrer">
        {words.job.metrics.grafana} <ExternalLinkAltIcon />
        <span className="pf-v6-screen-reader">{words.job.metrics.newWindow}</span>
      </a>
    </p>
  );
}

function Notes({ notes, source }: { notes: readonly string[]; source: string }) {
  const text = words.job.metrics;
  return (
    <>
      {source && <p className="odh-muted">{text.source(source)}</p>}
      {notes.length > 0 && (
        <Alert isInline variant="info" title={text.notes} component="h2">
          <List>
            {notes.map((one) => (
              <ListItem key={one}>
                <Said>{one}</Said>
              </ListItem>
            ))}
          </List>
        </Alert>
      )}
    </>
  );
}
