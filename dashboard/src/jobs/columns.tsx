/** The columns of the list: which there are, which are shown, and what a cell says. */
import { Progress, ProgressMeasureLocation } from "@patternfly/react-core";
import { useState } from "react";
import { Link } from "react-router";
import type { JobItem } from "../api/types";
import { jobPath } from "../app/paths";
import { Ago, useNow } from "../components/Ago";
import { StatusLabel } from "../components/StatusLabel";
import { duration, millis } from "../components/time";
import { useQueues } from "../create/server";
import { placeOf, placeWords } from "../queues/place";
import { words } from "../words";
import type { SortBy } from "./listState";

export type ColumnName = keyof typeof words.jobs.columns;

export interface Column {
  name: ColumnName;
  sort?: SortBy;
  /** Shown unless the user chose otherwise; the name always is. */
  shown: boolean;
  cell: (job: JobItem) => React.ReactNode;
}

const NONE = "–";

export const COLUMNS: readonly Column[] = [
  { name: "name", sort: "name", shown: true, cell: (job) => <Name job={job} /> },
  { name: "namespace", sort: "namespace", shown: true, cell: (job) => job.namespace },
  { name: "kind", sort: "kind", shown: true, cell: (job) => job.kind },
  { name: "state", sort: "state", shown: true, cell: (job) => <Status job={job} /> },
  { name: "progress", sort: "progress", shown: true, cell: (job) => <Done job={job} /> },
  {
    name: "workers",
    sort: "workers",
    shown: true,
    cell: (job) => (
      <span className="odh-number odh-nowrap">
        {job.workers} × {job.slots}
      </span>
    ),
  },
  {
    name: "gpus",
    sort: "gpus",
    shown: true,
    cell: (job) => <span className="odh-number">{job.gpus || NONE}</span>,
  },
  { name: "queue", sort: "queue", shown: true, cell: (job) => <InQueue job={job} /> },
  { name: "runtime", shown: false, cell: (job) => job.runtime || NONE },
  { name: "owner", shown: false, cell: (job) => job.owner || NONE },
  { name: "duration", sort: "duration", shown: true, cell: (job) => <Duration job={job} /> },
  { name: "created", sort: "created", shown: true, cell: (job) => <Ago time={job.created} /> },
];

const KEY = "odh-job-columns";

/** The project is said where there may be several. */
export function useColumns(namespace: string) {
  const [names, setNames] = useState<readonly string[]>(
    () =>
      localStorage.getItem(KEY)?.split(",") ??
      COLUMNS.filter((one) => one.shown).map((one) => one.name),
  );
  const shown = COLUMNS.filter(
    (one) =>
      one.name === "name" ||
      (names.includes(one.name) && !(one.name === "namespace" && namespace !== "")),
  );
  const toggle = (name: ColumnName) => {
    const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
    localStorage.setItem(KEY, next.join(","));
    setNames(next);
  };
  return { shown, toggle };
}

function Name({ job }: { job: JobItem }) {
  return (
    <Link to={jobPath(job)} className="odh-cell-name" title={job.name}>
      {job.name}
    </Link>
  );
}

/** When it came to be as it is. */
function since(job: JobItem): string | null {
  if (job.state === "Succeeded" || job.state === "Failed") return job.completed;
  return job.state === "Running" ? job.started : job.created;
}

function Status({ job }: { job: JobItem }) {
  // The reason of a job that runs, has succeeded or is suspended says the same as its state.
  const plain = job.state === "Running" || job.state === "Succeeded" || job.state === "Suspended";
  const why = plain ? "" : job.waitsFor || job.reason;
  return (
    <div className="odh-cell-status">
      <StatusLabel state={job.state} />
      {why && (
        <div className="odh-muted odh-small odh-cell-why" title={job.message || why}>
          {why}
        </div>
      )}
      <div className="odh-muted odh-small">
        <Ago time={since(job)} />
      </div>
    </div>
  );
}

/** With its place where it waits and the cluster tells places. */
function InQueue({ job }: { job: JobItem }) {
  const waits = job.queue !== "" && (job.state === "Created" || job.state === "Suspended");
  const { data } = useQueues(waits ? job.namespace : "");
  if (!job.queue) return <>{NONE}</>;
  const place = waits ? placeWords(placeOf(job, job.queue, data ?? [])) : "";
  return (
    <>
      <span className="odh-anywhere">{job.queue}</span>
      {place && <div className="odh-muted odh-small odh-nowrap">{place}</div>}
    </>
  );
}

function Done({ job }: { job: JobItem }) {
  const { progress } = job;
  if (!progress) return <>{NONE}</>;
  if (progress.fraction === null) {
    return (
      <span className="odh-number odh-nowrap">
        {progress.unit} {progress.step ?? ""}
      </span>
    );
  }
  const percent = Math.round(Math.min(1, Math.max(0, progress.fraction)) * 100);
  const left = job.state === "Running" && progress.etaSeconds !== null ? progress.etaSeconds : null;
  return (
    <div className="odh-cell-progress">
      <Progress
        aria-label={words.jobs.progressOf(job.name)}
        value={percent}
        size="sm"
        measureLocation={ProgressMeasureLocation.outside}
      />
      {left !== null && (
        <div className="odh-muted odh-small">{words.jobs.left(duration(left * 1000))}</div>
      )}
    </div>
  );
}

function Duration({ job }: { job: JobItem }) {
  const began = millis(job.started);
  if (began === null) return <>{NONE}</>;
  const ended = millis(job.completed);
  return (
    <span className="odh-number odh-nowrap">
      {ended === null ? <Running since={began} /> : duration(ended - began)}
    </span>
  );
}

function Running({ since: began }: { since: number }) {
  return <>{duration(useNow(1_000) - began)}</>;
}
