import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "react-router";
import type { ProjectUse } from "../api/types";
import { paths } from "../app/paths";
import { words } from "../words";

/** What each project holds, for who sees several: those that hold most first. */
export function Projects({ uses, hours }: { uses: readonly ProjectUse[]; hours: number }) {
  const text = words.home.projects;
  if (uses.length < 2) return null;
  return (
    <Card>
      <CardTitle component="h2">{text.title}</CardTitle>
      <CardBody>
        <Table variant="compact" aria-label={text.title}>
          <Thead>
            <Tr>
              <Th>{text.project}</Th>
              <Th>{text.running}</Th>
              <Th>{text.waiting}</Th>
              <Th>{text.jobs}</Th>
              <Th>{text.gpus}</Th>
              <Th>{text.gpuHours(words.home.within[hours as 24])}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {uses.map((one) => (
              <Tr key={one.namespace}>
                <Td dataLabel={text.project} className="odh-breaks">
                  <Link to={`${paths.jobs}?namespace=${encodeURIComponent(one.namespace)}`}>
                    {one.namespace}
                  </Link>
                </Td>
                <Td dataLabel={text.running} className="odh-number">
                  {one.running}
                </Td>
                <Td dataLabel={text.waiting} className="odh-number">
                  {one.waiting}
                </Td>
                <Td dataLabel={text.jobs} className="odh-number">
                  {one.jobs}
                </Td>
                <Td dataLabel={text.gpus} className="odh-number">
                  {one.gpusInUse}
                </Td>
                <Td dataLabel={text.gpuHours("")} className="odh-number">
                  {Math.round(one.gpuHours * 10) / 10}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      </CardBody>
    </Card>
  );
}
