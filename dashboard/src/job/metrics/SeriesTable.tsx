/** Newest, least and most of each series: what a chart shows, as a table. */
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { words } from "../../words";
import { amount } from "./amounts";
import type { Series } from "./usage";

export const USAGE = [
  "cpus",
  "memoryBytes",
  "gpuPercent",
  "gpuMemoryBytes",
  "receivedBytes",
  "sentBytes",
];

export function titleOf(name: string): string {
  if (!USAGE.includes(name)) return name;
  return words.job.metrics[name as "cpus"];
}

export function SeriesTable({ name, series }: { name: string; series: readonly Series[] }) {
  const text = words.job.metrics;
  return (
    <Table variant="compact" aria-label={titleOf(name)}>
      <Thead>
        <Tr>
          <Th>{text.series}</Th>
          <Th>{text.newest}</Th>
          <Th>{text.least}</Th>
          <Th>{text.most}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {series.map((one) => {
          const values = one.points.map((point) => point[1]);
          const who = one.pod || (one.rank === null ? text.everything : words.job.rank(one.rank));
          const lowest = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
          const highest = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
          return (
            <Tr key={`${one.pod} ${one.rank}`}>
              <Td dataLabel={text.series} className="odh-breaks">
                {who}
              </Td>
              <Td dataLabel={text.newest}>{amount(name, values.at(-1) ?? 0)}</Td>
              <Td dataLabel={text.least}>{amount(name, lowest)}</Td>
              <Td dataLabel={text.most}>{amount(name, highest)}</Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}
