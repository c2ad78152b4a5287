import {
  EmptyState,
  EmptyStateBody,
  Flex,
  Skeleton,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link, useSearchParams } from "react-router";
import { words } from "../../words";
import { amount } from "../metrics/amounts";
import { type UsageHistory, useUsage } from "../metrics/usage";
import type { JobPlace } from "../place";
import { finished } from "../situation";
import type { JobTabProps } from "../tabs";
import { RankMap, rankLogs, SIGNS } from "./RankMap";
import { counted, type NodePlace, rankMap } from "./rankMap";

export default function WorkersTab({ place, job, status }: JobTabProps) {
  const [search, setSearch] = useSearchParams();
  const usage = useUsage(place, !finished(job));
  const text = words.job.workers;
  if (!status) return <Skeleton height="16rem" screenreaderText={words.job.loading} />;
  const nodes = rankMap(job, status);
  if (nodes.length === 0) {
    return (
      <EmptyState headingLevel="h2" titleText={text.none}>
        <EmptyStateBody>{text.noneHelp}</EmptyStateBody>
      </EmptyState>
    );
  }
  const table = search.get("show") === "table";
  const show = (what: string) => setSearch(what ? { show: what } : {}, { replace: true });
  const { all, failed, ended } = counted(nodes);
  return (
    <div className="odh-cards">
      <Flex>
        <ToggleGroup aria-label={text.show}>
          <ToggleGroupItem text={text.map} isSelected={!table} onChange={() => show("")} />
          <ToggleGroupItem text={text.table} isSelected={table} onChange={() => show("table")} />
        </ToggleGroup>
        <h2>{text.summary(all, failed, ended)}</h2>
      </Flex>
      {table ? (
        <>
          <RankTable place={place} nodes={nodes} />
          <PodTable nodes={nodes} usage={usage.history} />
        </>
      ) : (
        <RankMap place={place} nodes={nodes} usage={usage.history} local={job.image === "local"} />
      )}
    </div>
  );
}

function RankTable({ place, nodes }: { place: JobPlace; nodes: readonly NodePlace[] }) {
  const text = words.job.workers;
  const ranks = nodes
    .flatMap(({ node, pods }) => pods.flatMap((pod) => pod.ranks.map((one) => ({ ...one, node }))))
    .sort((a, b) => a.rank - b.rank);
  return (
    <Table variant="compact" aria-label={text.ranks}>
      <Thead>
        <Tr>
          <Th>{text.columns.rank}</Th>
          <Th>{text.columns.state}</Th>
          <Th>{text.columns.end}</Th>
          <Th>{text.columns.pod}</Th>
          <Th>{text.columns.node}</Th>
          <Th>{text.columns.address}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {ranks.map((one) => (
          <Tr key={one.rank}>
            <Td dataLabel={text.columns.rank}>
              <Link to={rankLogs(place, one.rank)}>{one.rank}</Link>
            </Td>
            <Td dataLabel={text.columns.state}>
              <span aria-hidden="true">{SIGNS[one.standing]}</span> {text.signs[one.standing]}
            </Td>
            <Td dataLabel={text.columns.end}>{one.end}</Td>
            <Td dataLabel={text.columns.pod} className="odh-breaks">
              {one.pod}
            </Td>
            <Td dataLabel={text.columns.node}>{one.node}</Td>
            <Td dataLabel={text.columns.address}>{one.address}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function PodTable({ nodes, usage }: { nodes: readonly NodePlace[]; usage: UsageHistory }) {
  const text = words.job.workers;
  const names = text.podColumns;
  const last = (pod: string, name: string) => {
    const found = usage.points(pod, name).at(-1);
    return found ? amount(name, found[1]) : "";
  };
  return (
    <Table variant="compact" aria-label={text.pods}>
      <Thead>
        <Tr>
          {Object.entries(names).map(([key, name]) => (
            <Th key={key}>{name}</Th>
          ))}
        </Tr>
      </Thead>
      <Tbody>
        {nodes.flatMap(({ node, pods }) =>
          pods.map((pod) => (
            <Tr key={pod.name}>
              <Td dataLabel={names.pod} className="odh-breaks">
                {pod.name}
              </Td>
              <Td dataLabel={names.role}>{text.roles[pod.role]}</Td>
              <Td dataLabel={names.node}>{node}</Td>
              <Td dataLabel={names.phase}>{pod.there ? pod.phase : text.gone}</Td>
              <Td dataLabel={names.ready}>{pod.ready ? text.ready : text.notReady}</Td>
              <Td dataLabel={names.end}>{pod.end}</Td>
              <Td dataLabel={names.cpus}>{last(pod.name, "cpus")}</Td>
              <Td dataLabel={names.memory}>{last(pod.name, "memoryBytes")}</Td>
              <Td dataLabel={names.gpu}>{last(pod.name, "gpuPercent")}</Td>
            </Tr>
          )),
        )}
      </Tbody>
    </Table>
  );
}
