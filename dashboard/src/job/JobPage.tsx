/** One layout for jobs of all kinds; the tab and its state are in the address. */
import {
  Alert,
  Breadcrumb,
  BreadcrumbItem,
  EmptyState,
  EmptyStateBody,
  PageSection,
  Skeleton,
  Tab as TabButton,
  Tabs,
  TabTitleText,
  Title,
} from "@patternfly/react-core";
import { type ComponentType, lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { ProblemError } from "../api/client";
import { type KindPath, kindPath } from "../api/types";
import { jobPath, paths } from "../app/paths";
import { ProblemAlert, problemText } from "../components/ProblemAlert";
import { Said } from "../components/Said";
import { words } from "../words";
import { JobHeader } from "./JobHeader";
import "./job.css";
import { type JobPlace, kindOf } from "./place";
import { type JobTabProps, TABS, type Tab, tabOf } from "./tabs";
import { useJob } from "./useJob";

const CONTENT: Record<Tab, ComponentType<JobTabProps>> = {
  overview: lazy(() => import("./overview/OverviewTab")),
  configuration: lazy(() => import("./configuration/ConfigurationTab")),
  workers: lazy(() => import("./workers/WorkersTab")),
  logs: lazy(() => import("../logs/LogsTab")),
  metrics: lazy(() => import("./metrics/MetricsTab")),
  events: lazy(() => import("./EventsTab")),
};

export default function JobPage() {
  const { namespace = "", kinds = "", name = "" } = useParams();
  const kind: KindPath = kindPath(kinds === "trainjobs" ? "TrainJob" : "MPIJob");
  return (
    <JobOfAddress
      key={`${namespace}/${kind}/${name}`}
      place={{ namespace, kindPath: kind, name, uid: "" }}
    />
  );
}

function JobOfAddress({ place }: { place: JobPlace }) {
  const { namespace, name } = place;
  const now = useJob(place);
  const { job } = now;
  useEffect(() => {
    document.title = `${name} · ${words.shell.product}`;
  }, [name]);
  if (!job) {
    return (
      <PageSection hasBodyWrapper={false}>
        <Where namespace={namespace} name={name} />
        <Title headingLevel="h1" className="odh-breaks">
          {name}
        </Title>
        <NoJob error={now.error} retry={now.retry} />
      </PageSection>
    );
  }
  const whole = { ...place, uid: job.uid };
  return (
    <>
      <PageSection hasBodyWrapper={false} className="odh-page-top">
        <Where namespace={namespace} name={name} />
        {now.deleted && (
          <Alert component="h2" isInline variant="warning" title={words.job.deleted}>
            {words.job.deletedHelp} <Link to={paths.jobs}>{words.shell.toJobs}</Link>
          </Alert>
        )}
        <JobHeader place={whole} job={job} status={now.status} deleted={now.deleted} />
        <Announced name={name} state={words.states[job.state]} />
        {!!now.statusError && !now.deleted && (
          <ProblemAlert title={words.job.statusFailed} error={now.statusError} retry={now.retry} />
        )}
      </PageSection>
      <JobTabs
        key={job.uid}
        place={whole}
        job={job}
        status={now.status}
        events={now.events}
        live={now.live && !now.deleted}
      />
    </>
  );
}

function Where({ namespace, name }: { namespace: string; name: string }) {
  return (
    <Breadcrumb aria-label={words.job.breadcrumb}>
      <BreadcrumbItem
        render={({ className }) => (
          <Link className={className} to={`${paths.jobs}?namespace=${namespace}`}>
            {words.job.jobs}
          </Link>
        )}
      />
      <BreadcrumbItem>{namespace}</BreadcrumbItem>
      <BreadcrumbItem isActive>{name}</BreadcrumbItem>
    </Breadcrumb>
  );
}

function NoJob({ error, retry }: { error: unknown; retry: () => void }) {
  if (!error) return <Skeleton height="16rem" screenreaderText={words.job.loading} />;
  if (error instanceof ProblemError && error.status === 404) {
    return (
      <EmptyState headingLevel="h2" titleText={words.job.notFound}>
        <EmptyStateBody>
          <Said>{problemText(error)}</Said> <Link to={paths.jobs}>{words.shell.toJobs}</Link>
        </EmptyStateBody>
      </EmptyState>
    );
  }
  return <ProblemAlert title={words.job.failed} error={error} retry={retry} />;
}

/** Tells who does not see it that the state has changed. */
function Announced({ name, state }: { name: string; state: string }) {
  const [text, setText] = useState("");
  const first = useRef(state);
  useEffect(() => {
    if (first.current !== state) setText(words.job.stateChanged(name, state));
    first.current = state;
  }, [name, state]);
  return (
    <div role="status" className="pf-v6-screen-reader">
      {text}
    </div>
  );
}

function JobTabs(props: JobTabProps) {
  const { tab: asked } = useParams();
  const navigate = useNavigate();
  const tab = tabOf(asked);
  const ref = { ...props.place, kind: kindOf(props.place) };
  const Content = CONTENT[tab];
  return (
    <>
      <PageSection hasBodyWrapper={false} type="tabs">
        <Tabs
          activeKey={tab}
          onSelect={(_, key) => navigate(jobPath(ref, String(key)))}
          aria-label={words.job.tabsLabel}
          usePageInsets
        >
          {TABS.map((one) => (
            <TabButton
              key={one}
              eventKey={one}
              id={`odh-tab-${one}`}
              tabContentId="odh-tab-content"
              title={<TabTitleText>{words.job.tabs[one]}</TabTitleText>}
            />
          ))}
        </Tabs>
      </PageSection>
      <PageSection
        hasBodyWrapper={false}
        id="odh-tab-content"
        role="tabpanel"
        aria-labelledby={`odh-tab-${tab}`}
      >
        <Suspense fallback={<Skeleton height="16rem" screenreaderText={words.job.loading} />}>
          <Content {...props} />
        </Suspense>
      </PageSection>
    </>
  );
}
