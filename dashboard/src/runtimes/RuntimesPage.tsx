/** The runtimes of a project: all of them, or one with what is known of it. */
import { Button, PageSection } from "@patternfly/react-core";
import { CubesIcon } from "@patternfly/react-icons";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link, useParams } from "react-router";
import { Loading } from "../app/Loading";
import { useOneNamespace } from "../app/namespace";
import { paths } from "../app/paths";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { TeachingEmptyState } from "../components/TeachingEmptyState";
import { imageOf, implementationOf } from "../create/model/trainjob";
import { type RuntimeInfo, useRuntimes } from "../create/server";
import { words } from "../words";
import { RuntimeDetail } from "./RuntimeDetail";
import { jobsOf, newJobPath, runtimePath, useUsage } from "./server";

const said = words.runtimes;

export default function RuntimesPage() {
  const { name } = useParams();
  return name ? <RuntimeDetail key={name} name={name} /> : <List />;
}

function List() {
  const namespace = useOneNamespace();
  const found = useRuntimes(namespace);
  return (
    <>
      <PageHeading title={said.title} about={said.about} />
      <PageSection hasBodyWrapper={false} isFilled>
        {found.isError && (
          <ProblemAlert
            title={said.failed}
            error={found.error}
            retry={() => void found.refetch()}
          />
        )}
        {found.isPending && <Loading />}
        {found.data?.length === 0 && <Nothing />}
        {!!found.data?.length && <Runtimes namespace={namespace} items={found.data} />}
      </PageSection>
    </>
  );
}

function Nothing() {
  return (
    <TeachingEmptyState
      title={said.none}
      icon={CubesIcon}
      command={said.noneCommand}
      action={
        <Button variant="primary" component={(props) => <Link {...props} to={paths.create} />}>
          {said.create}
        </Button>
      }
    >
      {said.noneHelp}
    </TeachingEmptyState>
  );
}

function Runtimes({ namespace, items }: { namespace: string; items: readonly RuntimeInfo[] }) {
  const usage = useUsage(namespace).data ?? {};
  return (
    <Table aria-label={said.list}>
      <Thead>
        <Tr>
          <Th>{said.columns.name}</Th>
          <Th>{said.columns.kind}</Th>
          <Th modifier="fitContent">{said.columns.framework}</Th>
          <Th>{said.columns.nodes}</Th>
          <Th>{said.columns.implementation}</Th>
          <Th>{said.columns.image}</Th>
          <Th>{said.columns.usedBy}</Th>
          <Th screenReaderText={said.columns.actions} />
        </Tr>
      </Thead>
      <Tbody>
        {items.map((one) => (
          <Line
            key={`${one.kind}/${one.name}`}
            runtime={one}
            namespace={namespace}
            count={usage[one.name] ?? 0}
          />
        ))}
      </Tbody>
    </Table>
  );
}

function Line({
  runtime,
  namespace,
  count,
}: {
  runtime: RuntimeInfo;
  namespace: string;
  count: number;
}) {
  const use = newJobPath(runtime, namespace);
  const { columns } = said;
  return (
    <Tr>
      <Td dataLabel={columns.name}>
        <Link to={runtimePath(namespace, runtime)} className="odh-nowrap">
          {runtime.name}
        </Link>
      </Td>
      <Td dataLabel={columns.kind}>{scope(runtime)}</Td>
      <Td dataLabel={columns.framework}>{runtime.framework}</Td>
      <Td dataLabel={columns.nodes} className="odh-number">
        {runtime.numNodes}
      </Td>
      <Td dataLabel={columns.implementation}>{implementationOf(runtime)}</Td>
      <Td dataLabel={columns.image} modifier="breakWord">
        {imageOf(runtime)}
      </Td>
      <Td dataLabel={columns.usedBy}>
        {count > 0 ? (
          <Link to={jobsOf(namespace, runtime.name)} aria-label={said.jobsOf(count, runtime.name)}>
            {count}
          </Link>
        ) : (
          0
        )}
      </Td>
      <Td dataLabel={columns.actions}>
        <Link to={use} aria-label={said.useOf(runtime.name)} className="odh-nowrap">
          {said.use}
        </Link>
      </Td>
    </Tr>
  );
}

export function scope(runtime: RuntimeInfo): string {
  return runtime.kind === "TrainingRuntime" ? said.ofProject(runtime.namespace) : said.ofCluster;
}
