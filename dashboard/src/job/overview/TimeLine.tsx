import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { Event, Job, JobStatus } from "../../api/types";
import { useNow } from "../../components/Ago";
import { clock, duration, full } from "../../components/time";
import { words } from "../../words";
import { finished } from "../situation";
import { extent, type Phase, phases } from "./timeline";

interface Props {
  readonly job: Job;
  readonly status: JobStatus | null;
  readonly events: readonly Event[];
}

/** Phases as a table whose bars are drawn to scale: nothing is said by the drawing alone. */
export function TimeLine({ job, status, events }: Props) {
  const now = useNow(finished(job) ? 60_000 : 1_000);
  const text = words.job.timeline;
  const found = phases(job, status, events);
  return (
    <Table variant="compact" aria-label={text.title}>
      <Thead>
        <Tr>
          <Th>{text.columns.phase}</Th>
          <Th>{text.columns.from}</Th>
          <Th>{text.columns.took}</Th>
          <Th>{text.columns.result}</Th>
          <Th width={50}>{text.columns.bar}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {found.map((one) => (
          <Tr key={one.key}>
            <Td dataLabel={text.columns.phase}>{one.name}</Td>
            <Td dataLabel={text.columns.from}>
              {one.from === null ? (
                <span className="odh-muted">{text.unknownTime}</span>
              ) : (
                <span className="odh-nowrap odh-number" title={full(one.from)}>
                  {clock(one.from)}
                </span>
              )}
            </Td>
            <Td dataLabel={text.columns.took} className="odh-number odh-nowrap">
              {took(one, now)}
            </Td>
            <Td dataLabel={text.columns.result}>{text.states[one.state]}</Td>
            <Td dataLabel={text.columns.bar}>
              <Bar phase={one} all={found} now={now} />
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function took(phase: Phase, now: number): string {
  if (phase.from === null || phase.key === "submitted") return "";
  const end = phase.to ?? (phase.state === "now" ? now : null);
  if (end === null) return "";
  const long = end - phase.from;
  return long < 1_000 ? `${Math.max(0, Math.round(long))}ms` : duration(long);
}

function Bar({ phase, all, now }: { phase: Phase; all: readonly Phase[]; now: number }) {
  const place = extent(phase, all, now);
  if (!place) return null;
  const [left, width] = place;
  return (
    <div className="odh-bar" aria-hidden="true">
      <span
        className={`odh-bar--${phase.state}`}
        style={{ left: `${left}%`, width: `${width}%` }}
      />
    </div>
  );
}
