/** The queues of a project, what its quotas leave, and who waits before whom. */
import {
  Content,
  PageSection,
  Progress,
  ProgressMeasureLocation,
  Title,
} from "@patternfly/react-core";
import { ListIcon } from "@patternfly/react-icons";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { get } from "../api/client";
import {
  type JobItem,
  kindPath,
  type Queue,
  type QueueResource,
  type WaitingJob,
} from "../api/types";
import { Loading } from "../app/Loading";
import { useOneNamespace } from "../app/namespace";
import { jobPath, paths } from "../app/paths";
import { Ago } from "../components/Ago";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { TeachingEmptyState } from "../components/TeachingEmptyState";
import { amount } from "../create/model/demand";
import { useQueues, useQuota } from "../create/server";
import { words } from "../words";
import { waiting } from "./waiting";
import "./queues.css";

const said = words.queues;

export default function QueuesPage() {
  const namespace = useOneNamespace();
  const found = useQueues(namespace);
  return (
    <>
      <PageHeading title={said.title} about={said.about} />
      <PageSection hasBodyWrapper={false} isFilled>
        <div className="odh-queues">
          {found.isError && (
            <ProblemAlert
              title={said.failed}
              error={found.error}
              retry={() => void found.refetch()}
            />
          )}
          {found.isPending && <Loading />}
          {found.data?.length === 0 && (
            <TeachingEmptyState title={said.none} icon={ListIcon}>
              {said.noneHelp}
            </TeachingEmptyState>
          )}
          {!!found.data?.length && (
            <>
              <Queues items={found.data} />
              <ClusterQueues items={found.data} />
              <Waiting namespace={namespace} queues={found.data} />
            </>
          )}
          <Quota namespace={namespace} />
        </div>
      </PageSection>
    </>
  );
}

function Queues({ items }: { items: readonly Queue[] }) {
  const { columns } = said;
  return (
    <Table aria-label={said.list}>
      <Thead>
        <Tr>
          <Th>{columns.name}</Th>
          <Th>{columns.clusterQueue}</Th>
          <Th>{columns.admitted}</Th>
          <Th>{columns.pending}</Th>
          <Th screenReaderText={columns.actions} />
        </Tr>
      </Thead>
      <Tbody>
        {items.map((one) => {
          const query = new URLSearchParams({ namespace: one.namespace, queue: one.name });
          return (
            <Tr key={one.name}>
              <Td dataLabel={columns.name}>{one.name}</Td>
              <Td dataLabel={columns.clusterQueue}>{one.clusterQueue}</Td>
              <Td dataLabel={columns.admitted} className="odh-number">
                {one.admitted}
              </Td>
              <Td dataLabel={columns.pending} className="odh-number">
                {one.pending}
                {one.clusterPending !== null && (
                  <span className="odh-muted"> · {said.clusterWaits(one.clusterPending)}</span>
                )}
              </Td>
              <Td dataLabel={columns.actions} isActionCell>
                <Link to={`${paths.jobs}?${query.toString()}`} aria-label={said.jobs(one.name)}>
                  {said.showJobs}
                </Link>
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

/** Each once, though several queues of a project may lead to it; nothing where it may not be read. */
function ClusterQueues({ items }: { items: readonly Queue[] }) {
  const known = new Map<string, readonly QueueResource[]>();
  for (const one of items) if (one.resources?.length) known.set(one.clusterQueue, one.resources);
  if (known.size === 0) return null;
  return (
    <section aria-label={said.clusterQueues} className="odh-queues">
      <Title headingLevel="h2" size="lg">
        {said.clusterQueues}
      </Title>
      {[...known].map(([name, resources]) => (
        <div key={name} className="odh-queues">
          <h3>{said.clusterQueue(name)}</h3>
          {resources.map(({ resource, flavor, used, nominal }) => (
            <Bar
              key={`${flavor}/${resource}`}
              used={used}
              hard={nominal}
              text={said.resource(resource, flavor, used, nominal)}
              label={said.bar(name, `${resource} (${flavor})`)}
            />
          ))}
        </div>
      ))}
    </section>
  );
}

/** In the cluster's own order where it is told, else by the time of creation. */
function Waiting({ namespace, queues }: { namespace: string; queues: readonly Queue[] }) {
  const told = queues.filter((one) => one.waiting !== null);
  if (told.length === queues.length) return <Told namespace={namespace} queues={told} />;
  return <ByTime namespace={namespace} />;
}

function Told({ namespace, queues }: { namespace: string; queues: readonly Queue[] }) {
  const groups = queues.filter((one) => one.waiting?.length);
  if (groups.length === 0) return null;
  return (
    <>
      <Title headingLevel="h2" size="lg">
        {said.orderTold}
      </Title>
      <Content component="p">{said.orderKnown}</Content>
      {groups.map(({ name, waiting: jobs }) => (
        <Table key={name} aria-label={said.orderOf(name)} variant="compact">
          <Thead>
            <Tr>
              <Th>{said.place}</Th>
              <Th>{said.job}</Th>
              <Th>{said.inCluster}</Th>
              <Th>{said.priority}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {jobs?.map((job) => (
              <Tr key={`${job.kind}/${job.name}`}>
                <Td dataLabel={said.place}>{said.ahead(job.position - 1)}</Td>
                <Td dataLabel={said.job}>
                  <WaitingName job={job} namespace={namespace} />
                </Td>
                <Td dataLabel={said.inCluster}>{said.ahead(job.clusterPosition - 1)}</Td>
                <Td dataLabel={said.priority} className="odh-number">
                  {job.priority}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      ))}
    </>
  );
}

/** Others than training jobs wait too, and have no page here. */
function WaitingName({ job, namespace }: { job: WaitingJob; namespace: string }) {
  if (job.kind !== "MPIJob" && job.kind !== "TrainJob") return <>{`${job.kind} ${job.name}`}</>;
  return (
    <Link to={`${paths.jobs}/${namespace}/${kindPath(job.kind)}/${job.name}`}>{job.name}</Link>
  );
}

function ByTime({ namespace }: { namespace: string }) {
  const { data } = useQuery({
    queryKey: ["waiting", namespace],
    refetchInterval: 10_000,
    queryFn: ({ signal }) =>
      get("/api/v1/namespaces/{namespace}/jobs", {
        path: { namespace },
        query: { state: ["Created", "Suspended"], sortBy: "created", order: "asc", limit: 500 },
        signal,
      }),
  });
  const groups = waiting(data?.items ?? []);
  if (groups.length === 0) return null;
  return (
    <>
      <Title headingLevel="h2" size="lg">
        {said.order}
      </Title>
      <Content component="p">{said.orderNote}</Content>
      {groups.map(({ queue, jobs }) => (
        <Order key={queue} queue={queue} jobs={jobs} />
      ))}
    </>
  );
}

function Order({ queue, jobs }: { queue: string; jobs: readonly JobItem[] }) {
  return (
    <Table aria-label={said.orderOf(queue)} variant="compact">
      <Thead>
        <Tr>
          <Th>{said.place}</Th>
          <Th>{said.job}</Th>
          <Th>{said.waits}</Th>
          <Th>{said.since}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {jobs.map((job, n) => (
          <Tr key={job.uid}>
            <Td dataLabel={said.place}>{said.ahead(n)}</Td>
            <Td dataLabel={said.job}>
              <Link to={jobPath(job)}>{job.name}</Link>
            </Td>
            <Td dataLabel={said.waits}>{job.waitsFor || job.message}</Td>
            <Td dataLabel={said.since}>
              <Ago time={job.created} />
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function Quota({ namespace }: { namespace: string }) {
  const { data, error } = useQuota(namespace);
  if (data === null) return null;
  return (
    <section aria-label={said.quota} className="odh-queues">
      <Title headingLevel="h2" size="lg">
        {said.quota}
      </Title>
      {error && <ProblemAlert title={said.quotaFailed} error={error} />}
      {data?.length === 0 && <Content component="p">{said.noQuota}</Content>}
      {data?.map((one) => (
        <Bar
          key={one.name + one.resource}
          used={one.used}
          hard={one.hard}
          text={said.used(one.resource, one.used, one.hard)}
          label={said.bar(one.name, one.resource)}
        />
      ))}
    </section>
  );
}

interface BarProps {
  readonly used: string;
  readonly hard: string;
  readonly text: string;
  readonly label: string;
}

function Bar({ used, hard, text, label }: BarProps) {
  const [held, most] = [amount(used) ?? 0, amount(hard) ?? 0];
  const share = most > 0 ? Math.min((100 * held) / most, 100) : 100;
  return (
    <Progress
      value={share}
      title={text}
      label={`${Math.round(share)} %`}
      measureLocation={ProgressMeasureLocation.outside}
      variant={share >= 100 ? "danger" : share >= 80 ? "warning" : undefined}
      valueText={text}
      aria-label={label}
    />
  );
}
