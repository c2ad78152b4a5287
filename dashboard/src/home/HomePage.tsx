/** What runs, what waits, what failed lately, and how it went in all; one click from each job. */
import {
  Alert,
  Button,
  Grid,
  GridItem,
  PageSection,
  Stack,
  StackItem,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { CubesIcon } from "@patternfly/react-icons";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "react-router";
import { get } from "../api/client";
import type { Overview } from "../api/types";
import { useNamespace } from "../app/namespace";
import { paths } from "../app/paths";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { TeachingEmptyState } from "../components/TeachingEmptyState";
import { useLiveJobs } from "../jobs/useJobs";
import { words } from "../words";
import { Figures } from "./Figures";
import { JobCard } from "./JobCard";
import { Projects } from "./Projects";
import "./home.css";

const RANGES = [24, 168, 720] as const;
const POLL_MS = 5_000;
const LIVE_POLL_MS = 30_000;

export default function HomePage() {
  const { namespace } = useNamespace();
  const [search, setSearch] = useSearchParams();
  const asked = Number(search.get("hours"));
  const hours = RANGES.find((one) => one === asked) ?? 168;
  const live = useLiveJobs(namespace);
  const { data, error, refetch } = useQuery({
    queryKey: ["overview", namespace, hours],
    queryFn: ({ signal }) => get("/api/v1/overview", { query: { namespace, hours }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: live ? LIVE_POLL_MS : POLL_MS,
  });
  const setHours = (value: number) =>
    setSearch((before) => {
      const after = new URLSearchParams(before);
      after.set("hours", String(value));
      return after;
    });
  return (
    <>
      <PageHeading
        title={words.home.title}
        about={words.home.about}
        actions={<Ranges hours={hours} onChange={setHours} />}
      />
      <PageSection hasBodyWrapper={false} isFilled>
        <Stack hasGutter>
          {error && (
            <StackItem>
              <ProblemAlert
                title={words.home.cannotShow}
                error={error}
                retry={() => void refetch()}
              />
            </StackItem>
          )}
          {data?.notes.map((note) => (
            <StackItem key={note}>
              <Alert component="p" isInline isPlain variant="info" title={note} />
            </StackItem>
          ))}
          {(data || !error) && <Body overview={data} hours={hours} />}
        </Stack>
      </PageSection>
    </>
  );
}

function Body({ overview, hours }: { overview: Overview | undefined; hours: number }) {
  if (overview && isEmpty(overview)) return <FirstJob />;
  const text = words.home;
  return (
    <>
      <StackItem>
        <div className="odh-figures">
          <Figures overview={overview} hours={hours} />
        </div>
      </StackItem>
      <StackItem>
        <Grid hasGutter md={12} xl={4}>
          {(["running", "waiting", "failedLately"] as const).map((list) => (
            <GridItem key={list}>
              <JobCard
                title={text[list]}
                none={text.none[list]}
                jobs={overview?.[list]}
                kind={list}
                all={`${paths.jobs}?state=${STATES[list]}`}
              />
            </GridItem>
          ))}
        </Grid>
      </StackItem>
      {overview && (
        <StackItem>
          <Projects uses={overview.projects} hours={hours} />
        </StackItem>
      )}
    </>
  );
}

const STATES = {
  running: "Running,Restarting",
  waiting: "Created",
  failedLately: "Failed",
};

function isEmpty(overview: Overview): boolean {
  return overview.total === 0 && !overview.running.length && !overview.waiting.length;
}

function FirstJob() {
  const text = words.home.first;
  return (
    <StackItem>
      <TeachingEmptyState
        title={text.title}
        icon={CubesIcon}
        command={words.jobs.empty.command}
        action={
          <Button component={(props) => <Link {...props} to={paths.create} />}>
            {words.jobs.create}
          </Button>
        }
      >
        {text.body}
      </TeachingEmptyState>
    </StackItem>
  );
}

function Ranges({ hours, onChange }: { hours: number; onChange: (hours: number) => void }) {
  return (
    <ToggleGroup aria-label={words.home.range}>
      {RANGES.map((one) => (
        <ToggleGroupItem
          key={one}
          text={words.home.ranges[one]}
          isSelected={one === hours}
          onChange={() => onChange(one)}
        />
      ))}
    </ToggleGroup>
  );
}
