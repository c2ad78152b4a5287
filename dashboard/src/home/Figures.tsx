import { Card, CardBody, Skeleton } from "@patternfly/react-core";
import type { Overview } from "../api/types";
import { duration } from "../components/time";
import { words } from "../words";

interface Figure {
  label: string;
  value: string;
  about: string;
}

const NONE = "–";

/** Numbers of an overview in words; a dash where there is nothing to count. Pure. */
export function figures(overview: Overview, hours: 24 | 168 | 720): Figure[] {
  const text = words.home.figures;
  const range = words.home.within[hours];
  const { states, succeeded, failed, successRate, averageSeconds, cpusInUse } = overview;
  const running = (states.Running ?? 0) + (states.Restarting ?? 0);
  const waiting = states.Created ?? 0;
  return [
    {
      label: text.total,
      value: whole(overview.total),
      about: text.now(running, waiting, states.Suspended ?? 0),
    },
    {
      label: text.success,
      value: successRate === null ? NONE : percent(successRate),
      about: `${text.ended(succeeded, failed)} ${range}`,
    },
    {
      label: text.average,
      value: averageSeconds === null ? NONE : duration(averageSeconds * 1000),
      about: range,
    },
    { label: text.gpus, value: whole(overview.gpusInUse), about: text.rightNow },
    {
      label: text.cpus,
      value: cpusInUse === null ? NONE : whole(Math.round(cpusInUse * 10) / 10),
      about: cpusInUse === null ? text.notMeasured : text.rightNow,
    },
    { label: text.gpuHours, value: whole(Math.round(overview.gpuHours * 10) / 10), about: range },
  ];
}

/** 100 % only where nothing failed. */
function percent(rate: number): string {
  const rounded = Math.round(rate * 100);
  return `${rate < 1 ? Math.min(99, rounded) : rounded}%`;
}

function whole(value: number): string {
  return value.toLocaleString("en-US");
}

const LOADING = ["a", "b", "c", "d", "e", "f"];

export function Figures({ overview, hours }: { overview?: Overview; hours: number }) {
  if (!overview) {
    return LOADING.map((one) => (
      <Card isCompact key={one}>
        <CardBody>
          <Skeleton screenreaderText={words.shell.loading} height="4.5rem" />
        </CardBody>
      </Card>
    ));
  }
  return figures(overview, hours as 24).map(({ label, value, about }) => (
    <Card isCompact key={label}>
      <CardBody>
        <dl className="odh-figure">
          <dt>{label}</dt>
          <dd className="odh-figure-value">{value}</dd>
          <dd className="odh-muted odh-small">{about}</dd>
        </dl>
      </CardBody>
    </Card>
  ));
}
