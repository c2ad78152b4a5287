/** Why a job failed, or seems to be stuck: who, where, the line, what followed, what to do. */
import {
  Alert,
  Button,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  ExpandableSection,
  Label,
  List,
  ListItem,
  Skeleton,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { request } from "../../api/client";
import type { Finding, Findings, Job } from "../../api/types";
import { jobPath } from "../../app/paths";
import { ProblemAlert } from "../../components/ProblemAlert";
import { Said } from "../../components/Said";
import { words } from "../../words";
import { type JobPlace, kindOf, placeNames } from "../place";
import { finished } from "../situation";

interface Props {
  readonly place: JobPlace;
  readonly job: Job;
  /** what the controller says of a job that seems to be stuck */
  readonly stuck: string;
}

export function Cause({ place, job, stuck }: Props) {
  const text = words.job.cause;
  const path = `/api/v1/namespaces/{namespace}/${place.kindPath}/{name}/explain`;
  const found = useQuery({
    queryKey: [
      "explain",
      place.namespace,
      place.kindPath,
      place.name,
      job.uid,
      job.completed,
      stuck,
    ],
    queryFn: ({ signal }) =>
      request("GET", path, { path: placeNames(place), signal }) as Promise<Findings>,
    staleTime: finished(job) ? Number.POSITIVE_INFINITY : 60_000,
  });
  if (found.isPending) return <Skeleton height="8rem" screenreaderText={text.reading} />;
  if (found.error) {
    const retry = () => void found.refetch();
    return <ProblemAlert title={text.failed} error={found.error} retry={retry} />;
  }
  const [first, ...others] = found.data.items;
  const title = stuck ? text.suspicion : text.title;
  const variant = stuck ? "warning" : "danger";
  if (!first) {
    return (
      <Alert isInline variant={variant} title={title} component="h2">
        <p className="odh-breaks">{stuck || job.message || text.none}</p>
        <p>{text.noneHelp}</p>
      </Alert>
    );
  }
  return (
    <Alert isInline variant={variant} title={`${title}: ${first.title}`} component="h2">
      <OneCause finding={first} place={place} />
      {others.length > 0 && (
        <ExpandableSection toggleText={text.others}>
          {others.map((one) => (
            <div key={`${one.cause} ${one.line}`}>
              <strong>{one.title}</strong>
              <OneCause finding={one} place={place} />
            </div>
          ))}
        </ExpandableSection>
      )}
    </Alert>
  );
}

function OneCause({ finding, place }: { finding: Finding; place: JobPlace }) {
  const text = words.job.cause;
  return (
    <>
      <DescriptionList isHorizontal isCompact>
        <Names name={text.ranks} of={finding.ranks} />
        <Names name={text.hosts} of={finding.hosts} />
        <Fact name={text.confidenceLabel}>
          <Label isCompact>{text.confidence[finding.confidence]}</Label>
        </Fact>
        <Fact name={text.remedy}>
          <Said>{finding.remedy}</Said>
        </Fact>
        {finding.instead && <Fact name={text.instead}>{finding.instead}</Fact>}
      </DescriptionList>
      {finding.line && (
        <figure className="odh-above">
          <figcaption>{text.line}</figcaption>
          <pre className="odh-quoted">{finding.line}</pre>
        </figure>
      )}
      <Button
        variant="link"
        isInline
        component={(props) => <Link {...props} to={linePath(place, finding)} />}
      >
        {finding.line ? text.toLine : text.toLog}
      </Button>
      {finding.followed.length > 0 && (
        <div className="odh-above">
          <p>
            <strong>{text.followed}</strong>
          </p>
          <List>
            {finding.followed.map((one) => (
              <ListItem key={one} className="odh-breaks">
                {one}
              </ListItem>
            ))}
          </List>
        </div>
      )}
    </>
  );
}

/** The log at the line that shows the cause. */
export function linePath(place: JobPlace, finding: Pick<Finding, "line">): string {
  const base = jobPath({ ...place, kind: kindOf(place) }, "logs");
  return finding.line ? `${base}?find=${encodeURIComponent(finding.line)}` : base;
}

function Names({
  name,
  of,
}: {
  name: (count: number) => string;
  of: readonly (number | string)[];
}) {
  if (of.length === 0) return null;
  const sorted = of.map(String).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return <Fact name={name(of.length)}>{sorted.join(", ")}</Fact>;
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{name}</DescriptionListTerm>
      <DescriptionListDescription>{children}</DescriptionListDescription>
    </DescriptionListGroup>
  );
}
