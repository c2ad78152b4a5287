/** One runtime: what it is, what is wrong with it, who uses it, and whether it works. */
import {
  Alert,
  Breadcrumb,
  BreadcrumbItem,
  Button,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  PageSection,
  Spinner,
  Title,
} from "@patternfly/react-core";
import { type ReactNode, useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { Loading } from "../app/Loading";
import { useOneNamespace } from "../app/namespace";
import { paths } from "../app/paths";
import { usePermissions } from "../app/permissions";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { imageOf, implementationOf } from "../create/model/trainjob";
import { stringify } from "../create/model/yamlText";
import type { RuntimeInfo } from "../create/server";
import { words } from "../words";
import { scope } from "./RuntimesPage";
import { jobsOf, newJobPath, useLint, useRuntime, useUsage } from "./server";
import { Steps, TestRuntime } from "./TestRuntime";
import "./runtimes.css";

const said = words.runtimes;

export function RuntimeDetail({ name }: { name: string }) {
  const namespace = useOneNamespace();
  const [search] = useSearchParams();
  const found = useRuntime(namespace, name, search.get("kind") ?? "");
  return (
    <>
      <PageSection hasBodyWrapper={false} type="breadcrumb">
        <Breadcrumb aria-label={said.crumbs}>
          <BreadcrumbItem>
            <Link to={paths.runtimes} className="pf-v6-c-breadcrumb__link">
              {said.title}
            </Link>
          </BreadcrumbItem>
          <BreadcrumbItem isActive>{name}</BreadcrumbItem>
        </Breadcrumb>
      </PageSection>
      <PageHeading
        title={name}
        actions={
          found.data && (
            <Button
              variant="primary"
              component={(props) => <Link {...props} to={newJobPath(found.data, namespace)} />}
            >
              {said.use}
            </Button>
          )
        }
      />
      <PageSection hasBodyWrapper={false} isFilled>
        {found.isError && (
          <ProblemAlert
            title={said.oneFailed(name)}
            error={found.error}
            retry={() => void found.refetch()}
          />
        )}
        {found.isPending && <Loading />}
        {found.data && <Known runtime={found.data} namespace={namespace} />}
      </PageSection>
    </>
  );
}

function Known({ runtime, namespace }: { runtime: RuntimeInfo; namespace: string }) {
  const count = useUsage(namespace).data?.[runtime.name] ?? 0;
  const lines: [string, ReactNode][] = [
    [said.columns.kind, scope(runtime)],
    [said.columns.framework, runtime.framework],
    [said.columns.nodes, runtime.numNodes],
    [said.columns.implementation, implementationOf(runtime)],
    [said.columns.image, imageOf(runtime)],
    [
      said.columns.usedBy,
      count > 0 ? (
        <Link key="jobs" to={jobsOf(namespace, runtime.name)}>
          {said.jobsOf(count, runtime.name)}
        </Link>
      ) : (
        0
      ),
    ],
  ];
  return (
    <div className="odh-runtime">
      <DescriptionList isHorizontal isCompact>
        {lines
          .filter(([, value]) => value !== "")
          .map(([term, value]) => (
            <DescriptionListGroup key={term}>
              <DescriptionListTerm>{term}</DescriptionListTerm>
              <DescriptionListDescription>{value}</DescriptionListDescription>
            </DescriptionListGroup>
          ))}
      </DescriptionList>
      <Lint runtime={runtime} namespace={namespace} />
      <TestRuntime runtime={runtime} namespace={namespace} />
      <Manifest runtime={runtime} />
    </div>
  );
}

function Lint({ runtime, namespace }: { runtime: RuntimeInfo; namespace: string }) {
  const may = usePermissions(namespace)("test-runtimes");
  const found = useLint(namespace, runtime.name, runtime.kind, may.allowed);
  if (!may.allowed) return null;
  return (
    <section aria-label={said.lint} className="odh-runtime">
      <Title headingLevel="h2" size="lg">
        {said.lint}
      </Title>
      {found.isPending && <Spinner size="md" aria-label={said.linting} />}
      {found.isError && <ProblemAlert title={said.lintFailed} error={found.error} />}
      {found.data && (
        <Alert
          isInline
          component="p"
          variant={found.data.passed ? "success" : "danger"}
          title={found.data.summary}
        />
      )}
      {found.data && !found.data.passed && <Steps steps={found.data.steps} label={said.lint} />}
    </section>
  );
}

function Manifest({ runtime }: { runtime: RuntimeInfo }) {
  const text = useMemo(() => stringify(runtime.manifest), [runtime.manifest]);
  return (
    <div className="odh-runtime">
      <Title headingLevel="h2" size="lg">
        {said.manifest}
      </Title>
      {/* Who has no mouse scrolls it by keys. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls takes the focus */}
      <section className="odh-runtime-yaml" tabIndex={0} aria-label={said.manifest}>
        {text}
      </section>
    </div>
  );
}
