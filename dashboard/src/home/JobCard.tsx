import {
  Card,
  CardBody,
  CardFooter,
  CardHeader,
  CardTitle,
  Skeleton,
} from "@patternfly/react-core";
import { Link } from "react-router";
import type { JobItem } from "../api/types";
import { jobKey, jobPath } from "../app/paths";
import { Ago } from "../components/Ago";
import { StatusLabel } from "../components/StatusLabel";
import { words } from "../words";

type ListName = "running" | "waiting" | "failedLately";

/** A few jobs of one sort; each leads to its own page. */
export function JobCard({
  title,
  none,
  jobs,
  kind,
  all,
}: {
  title: string;
  none: string;
  jobs: readonly JobItem[] | undefined;
  kind: ListName;
  all: string;
}) {
  return (
    <Card isFullHeight>
      <CardHeader>
        <CardTitle component="h2">{title}</CardTitle>
      </CardHeader>
      <CardBody>
        {!jobs && <Skeleton screenreaderText={words.shell.loading} height="8rem" />}
        {jobs?.length === 0 && <p className="odh-muted">{none}</p>}
        {!!jobs?.length && (
          <ul className="odh-jobs" aria-label={title}>
            {jobs.map((job) => (
              <li key={jobKey(job)}>
                <Link to={jobPath(job)} className="odh-job-name" title={job.name}>
                  {job.name}
                </Link>
                <StatusLabel state={job.state} />
                <div className="odh-muted odh-small odh-job-about">
                  {about(job, kind)}
                  <Ago time={when(job, kind)} />
                </div>
              </li>
            ))}
          </ul>
        )}
      </CardBody>
      <CardFooter>
        <Link to={all}>{words.home.all[kind]}</Link>
      </CardFooter>
    </Card>
  );
}

function when(job: JobItem, kind: ListName): string | null {
  if (kind === "running") return job.started ?? job.created;
  return kind === "failedLately" ? job.completed : job.created;
}

function about(job: JobItem, kind: ListName): string {
  const { fraction } = job.progress ?? { fraction: null };
  const parts = [job.namespace];
  if (kind === "running" && fraction !== null) parts.push(`${Math.round(fraction * 100)}%`);
  if (kind === "waiting" && job.waitsFor) parts.push(job.waitsFor);
  if (kind === "failedLately" && job.reason) parts.push(job.reason);
  return `${parts.join(" · ")} · `;
}
