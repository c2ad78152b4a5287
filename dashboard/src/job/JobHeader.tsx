import { Flex, FlexItem, Label, Title } from "@patternfly/react-core";
import type { Job, JobStatus } from "../api/types";
import { Ago } from "../components/Ago";
import { StatusLabel } from "../components/StatusLabel";
import { words } from "../words";
import { JobActions } from "./JobActions";
import type { JobPlace } from "./place";
import { since } from "./situation";

interface Props {
  readonly place: JobPlace;
  readonly job: Job;
  readonly status: JobStatus | null;
  readonly deleted: boolean;
}

export function JobHeader({ place, job, status, deleted }: Props) {
  return (
    <Flex
      justifyContent={{ default: "justifyContentSpaceBetween" }}
      alignItems={{ default: "alignItemsFlexStart" }}
    >
      <FlexItem flex={{ default: "flex_1" }}>
        <Title headingLevel="h1" className="odh-breaks">
          {job.name}
        </Title>
        <Flex gap={{ default: "gapSm" }} alignItems={{ default: "alignItemsCenter" }}>
          <Label isCompact>{words.job.kinds[job.kind] ?? job.kind}</Label>
          <StatusLabel state={job.state} />
          {job.reason && job.reason !== `${job.kind}${job.state}` && <span>{job.reason}</span>}
          <span className="odh-muted">
            {words.job.since} <Ago time={since(job, status)} />
          </span>
        </Flex>
      </FlexItem>
      <FlexItem>{!deleted && <JobActions place={place} job={job} />}</FlexItem>
    </Flex>
  );
}
