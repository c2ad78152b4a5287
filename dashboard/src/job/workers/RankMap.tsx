import { Flex, FlexItem } from "@patternfly/react-core";
import { Link } from "react-router";
import { jobPath } from "../../app/paths";
import { words } from "../../words";
import type { UsageHistory } from "../metrics/usage";
import { type JobPlace, kindOf } from "../place";
import type { NodePlace, PodPlace, RankPlace, Standing } from "./rankMap";
import { Sparkline } from "./Sparkline";
import "./workers.css";

/** What stands for a state besides its colour and border. */
export const SIGNS: Record<Standing, string> = {
  running: "▶",
  waiting: "…",
  succeeded: "✓",
  failed: "✕",
  ended: "■",
};

interface Props {
  readonly place: JobPlace;
  readonly nodes: readonly NodePlace[];
  readonly usage: UsageHistory;
  readonly local: boolean;
}

export function RankMap({ place, nodes, usage, local }: Props) {
  const text = words.job.workers;
  return (
    <div className="odh-nodes">
      <Legend />
      {nodes.map(({ node, pods }) => (
        <section key={node} className="odh-node" aria-label={nodeName(node, local, pods)}>
          <h3>{nodeName(node, local, pods)}</h3>
          <ul className="odh-pods">
            {pods.map((pod) => (
              <li key={pod.name} className="odh-pod">
                <div className="odh-pod__name" title={pod.name}>
                  <bdi>{pod.name}</bdi>
                </div>
                <div className="odh-muted">
                  {text.roles[pod.role]} · {pod.there ? pod.phase : text.gone}
                </div>
                <Sparkline pod={pod.name} usage={usage} />
                <Ranks place={place} ranks={pod.ranks} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

export function nodeName(node: string, local: boolean, pods: readonly PodPlace[]): string {
  const text = words.job.workers;
  if (node) return text.node(node);
  if (local) return text.noNode;
  return pods.some((pod) => pod.there) ? text.unplaced : text.gone;
}

export function rankLogs(place: JobPlace, rank: number): string {
  return `${jobPath({ ...place, kind: kindOf(place) }, "logs")}?ranks=${rank}`;
}

function Ranks({ place, ranks }: { place: JobPlace; ranks: readonly RankPlace[] }) {
  const text = words.job.workers;
  if (ranks.length === 0) return null;
  return (
    <ul className="odh-ranks">
      {ranks.map((one) => {
        const name = text.rankLabel(one.rank, text.signs[one.standing], one.end);
        return (
          <li key={one.rank}>
            <Link
              to={rankLogs(place, one.rank)}
              className={`odh-rank odh-rank--${one.standing}`}
              aria-label={name}
              title={name}
            >
              <span aria-hidden="true">{SIGNS[one.standing]}</span>
              {one.rank}
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

function Legend() {
  const text = words.job.workers;
  return (
    <Flex gap={{ default: "gapMd" }} role="group" aria-label={text.legend}>
      {(Object.keys(SIGNS) as Standing[]).map((one) => (
        <FlexItem key={one}>
          <span className={`odh-rank odh-rank--${one}`} aria-hidden="true">
            {SIGNS[one]}
          </span>{" "}
          {text.signs[one]}
        </FlexItem>
      ))}
    </Flex>
  );
}
