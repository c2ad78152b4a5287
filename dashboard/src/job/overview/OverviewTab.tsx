import {
  Alert,
  Card,
  CardBody,
  CardTitle,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Gallery,
  Progress,
  Skeleton,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { Job, JobStatus } from "../../api/types";
import { jobPath, paths } from "../../app/paths";
import { Ago, useNow } from "../../components/Ago";
import { duration, millis } from "../../components/time";
import type { JsonObject } from "../../create/model/json";
import * as mpijob from "../../create/model/mpijob";
import { useQueues } from "../../create/server";
import { placeOf, placeSentence } from "../../queues/place";
import { words } from "../../words";
import { type JobPlace, kindOf } from "../place";
import { finished, ran, sentence, suspicion } from "../situation";
import type { JobTabProps } from "../tabs";
import { Cause } from "./Cause";
import { TimeLine } from "./TimeLine";
import { queueOf } from "./timeline";

export default function OverviewTab({ place, job, status, events }: JobTabProps) {
  const now = useNow(finished(job) ? 60_000 : 1_000);
  const text = words.job;
  const stuck = job.state === "Running" ? suspicion(status) : "";
  return (
    <div className="odh-cards">
      <Alert
        isInline
        variant={variantOf(job)}
        title={sentence(job, status, now)}
        component="h2"
        className="odh-breaks"
      />
      {(job.state === "Failed" || stuck) && <Cause place={place} job={job} stuck={stuck} />}
      {status?.missing && (
        <Alert component="h2" isInline variant="warning" title={text.missing}>
          {status.missing}
        </Alert>
      )}
      <Part title={text.timeline.title}>
        {status ? <TimeLine job={job} status={status} events={events} /> : <Awaited />}
      </Part>
      <Gallery hasGutter minWidths={{ default: "24rem" }}>
        <Part title={text.progress.title}>{status ? <HowFar status={status} /> : <Awaited />}</Part>
        <Part title={text.facts.title}>
          <Facts job={job} status={status} now={now} />
        </Part>
      </Gallery>
      {status && status.attempts.length > 0 && (
        <Part title={text.attempts.title}>
          <Attempts place={place} status={status} />
        </Part>
      )}
      {status && (
        <Part title={text.conditions.title}>
          <Conditions status={status} />
        </Part>
      )}
    </div>
  );
}

function variantOf(job: Job) {
  if (job.state === "Succeeded") return "success";
  if (job.state === "Failed") return "danger";
  return job.state === "Restarting" ? "warning" : "info";
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>{children}</CardBody>
    </Card>
  );
}

/** In the place of what the status will tell: a job of many workers takes seconds for it. */
function Awaited() {
  return <Skeleton height="8rem" screenreaderText={words.job.loading} />;
}

function HowFar({ status }: { status: JobStatus }) {
  const text = words.job.progress;
  const { progress } = status;
  if (!progress || (progress.step === null && Object.keys(progress.metrics).length === 0)) {
    return (
      <>
        <p>{text.unknown}</p>
        <p className="odh-muted">{text.unknownHelp}</p>
      </>
    );
  }
  const ended = finished(status);
  return (
    <>
      {progress.step !== null && progress.fraction === null && (
        <p>{text.of(progress.unit, progress.step, progress.total)}</p>
      )}
      {progress.step !== null && progress.fraction !== null && (
        <Progress
          value={Math.round(progress.fraction * 100)}
          title={text.of(progress.unit, progress.step, progress.total)}
          aria-label={text.label}
          helperText={
            progress.etaSeconds && !ended
              ? text.left(duration(progress.etaSeconds * 1_000))
              : undefined
          }
        />
      )}
      <DescriptionList isHorizontal isCompact>
        {Object.entries(progress.metrics).map(([name, value]) => (
          <Fact key={name} name={name}>
            <span className="odh-number">{Number(value.toPrecision(6))}</span>
          </Fact>
        ))}
      </DescriptionList>
    </>
  );
}

function Facts({ job, status, now }: { job: Job; status: JobStatus | null; now: number }) {
  const text = words.job.facts;
  const long = ran(job, now);
  const queue = queueOf(job);
  const gpus = job.kind === "MPIJob" ? mpijob.gpus(job.manifest as JsonObject) : 0;
  const replicas = (one: JobStatus["launcher"]) =>
    text.replicas(one.wanted, one.active, one.succeeded, one.failed);
  return (
    <DescriptionList isHorizontal isCompact className="odh-breaks">
      <Fact name={text.command}>
        <code>{job.command.join(" ")}</code>
      </Fact>
      <Fact name={text.image}>{job.image}</Fact>
      <Fact name={text.launcher}>{status && replicas(status.launcher)}</Fact>
      <Fact name={text.workers}>{status ? replicas(status.workers) : job.workers}</Fact>
      <Fact name={text.ranks}>{text.ranksOf(job.workers, job.slots)}</Fact>
      {gpus > 0 && <Fact name={text.gpus}>{text.gpusOf(gpus, job.workers)}</Fact>}
      <Fact name={text.mpi}>{job.implementation}</Fact>
      {queue && (
        <Fact name={text.queue}>
          <InQueue job={job} queue={queue} />
        </Fact>
      )}
      <Fact name={text.created}>
        <Ago time={job.created} />
      </Fact>
      {job.started && (
        <Fact name={text.started}>
          <Ago time={job.started} />
        </Fact>
      )}
      {job.completed && (
        <Fact name={text.ended}>
          <Ago time={job.completed} />
        </Fact>
      )}
      {long !== null && <Fact name={text.ran}>{duration(long)}</Fact>}
    </DescriptionList>
  );
}

/** Its place among those that wait, where the cluster tells it. */
function InQueue({ job, queue }: { job: Job; queue: string }) {
  const waits = job.state === "Created" || job.state === "Suspended";
  const { data } = useQueues(waits ? job.namespace : "");
  const place = waits && data ? placeOf(job, queue, data) : null;
  return (
    <>
      <Link to={`${paths.queues}?namespace=${encodeURIComponent(job.namespace)}`}>{queue}</Link>
      {place && <div className="odh-muted odh-small">{placeSentence(place)}</div>}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{name}</DescriptionListTerm>
      <DescriptionListDescription>{children}</DescriptionListDescription>
    </DescriptionListGroup>
  );
}

function Attempts({ place, status }: { place: JobPlace; status: JobStatus }) {
  const text = words.job.attempts;
  const logs = jobPath({ ...place, kind: kindOf(place) }, "logs");
  return (
    <Table variant="compact" aria-label={text.title}>
      <Thead>
        <Tr>
          <Th>{text.columns.attempt}</Th>
          <Th>{text.columns.began}</Th>
          <Th>{text.columns.took}</Th>
          <Th>{text.columns.who}</Th>
          <Th width={40}>{text.columns.reason}</Th>
          <Th>{text.log}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {status.attempts.map((one) => {
          const [began, ended] = [millis(one.began), millis(one.ended)];
          const rank = one.rank === null ? "" : words.job.rank(one.rank);
          return (
            <Tr key={one.attempt}>
              <Td dataLabel={text.columns.attempt}>{one.attempt}</Td>
              <Td dataLabel={text.columns.began}>
                <Ago time={one.began} />
              </Td>
              <Td dataLabel={text.columns.took}>
                {began !== null && ended !== null && duration(ended - began)}
              </Td>
              <Td dataLabel={text.columns.who} className="odh-breaks">
                {[rank, one.host].filter(Boolean).join(words.job.on)}
              </Td>
              <Td dataLabel={text.columns.reason} className="odh-breaks">
                <strong>{one.reason}</strong> {one.message}
              </Td>
              <Td dataLabel={text.log}>
                <Link
                  to={`${logs}?attempt=${one.attempt}`}
                  aria-label={`${text.log}: ${one.attempt}`}
                >
                  {text.log}
                </Link>
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

function Conditions({ status }: { status: JobStatus }) {
  const text = words.job.conditions;
  return (
    <Table variant="compact" aria-label={text.title}>
      <Thead>
        <Tr>
          <Th>{text.columns.type}</Th>
          <Th>{text.columns.status}</Th>
          <Th>{text.columns.reason}</Th>
          <Th width={50}>{text.columns.message}</Th>
          <Th>{text.columns.time}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {status.conditions.map((one) => (
          <Tr key={one.type}>
            <Td dataLabel={text.columns.type}>{one.type}</Td>
            <Td dataLabel={text.columns.status}>{one.status}</Td>
            <Td dataLabel={text.columns.reason}>{one.reason}</Td>
            <Td dataLabel={text.columns.message} className="odh-breaks">
              {one.message}
            </Td>
            <Td dataLabel={text.columns.time}>
              <Ago time={one.lastTransitionTime} />
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
