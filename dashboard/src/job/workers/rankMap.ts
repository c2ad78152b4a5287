/** Which rank runs where, and how each fared: node, its pods, their ranks. Pure. */
import type { Job, JobStatus } from "../../api/types";

export type Standing = "running" | "waiting" | "succeeded" | "failed" | "ended";

export interface RankPlace {
  readonly rank: number;
  readonly standing: Standing;
  readonly end: string;
  readonly pod: string;
  readonly address: string;
}

export interface PodPlace {
  readonly name: string;
  readonly role: "launcher" | "worker";
  readonly node: string;
  readonly phase: string;
  readonly ready: boolean;
  /** whether the cluster still has it; of a pod that is gone only its ranks are known */
  readonly there: boolean;
  readonly end: string;
  readonly ranks: readonly RankPlace[];
}

export interface NodePlace {
  readonly node: string;
  readonly pods: readonly PodPlace[];
}

const SIGTERM = 15;
const SIGKILL = 9;

/** Nodes in the order of their lowest pods, the launcher before workers. */
export function rankMap(job: Job, status: JobStatus): NodePlace[] {
  const blamed = status.attempts.at(-1)?.rank ?? null;
  const anyFailed = status.ranks.some((one) => ownFault(one));
  const ranks = new Map<string, RankPlace[]>();
  for (const one of status.ranks) {
    const standing = standingOf(one, { blamed, anyFailed });
    const { rank, end, pod, address } = one;
    const list = ranks.get(pod) ?? [];
    list.push({ rank, standing, end: end === "0" ? "" : end, pod, address });
    ranks.set(pod, list);
  }
  if (ranks.size === 0) expected(job, status, ranks);
  const pods = new Map<string, PodPlace>();
  for (const one of status.pods) {
    const { name, role, node, phase, ready, end } = one;
    pods.set(name, {
      name,
      role,
      node,
      phase,
      ready,
      end,
      there: true,
      ranks: ranks.get(name) ?? [],
    });
  }
  for (const [name, list] of ranks) {
    if (!pods.has(name)) pods.set(name, goneWith(name, list));
  }
  const nodes = new Map<string, PodPlace[]>();
  for (const one of [...pods.values()].sort(inOrder)) {
    nodes.set(one.node, [...(nodes.get(one.node) ?? []), one]);
  }
  return [...nodes].map(([node, found]) => ({ node, pods: found }));
}

function goneWith(name: string, ranks: readonly RankPlace[]): PodPlace {
  return { name, role: "worker", node: "", phase: "", ready: false, end: "", there: false, ranks };
}

/** Before ranks are known: as many of them in each worker as it has slots. */
function expected(job: Job, status: JobStatus, ranks: Map<string, RankPlace[]>): void {
  const workers = status.pods
    .filter((one) => one.role === "worker")
    .sort((a, b) => a.index - b.index);
  for (const pod of workers) {
    const list = Array.from({ length: job.slots }, (_, slot) => ({
      rank: pod.index * job.slots + slot,
      standing: "waiting" as const,
      end: "",
      pod: pod.name,
      address: pod.address,
    }));
    ranks.set(pod.name, list);
  }
}

type Ended = JobStatus["ranks"][number];

function ownFault(one: Ended): boolean {
  if (one.exitCode !== null) return one.exitCode !== 0;
  return one.signal !== null && one.signal !== SIGTERM && one.signal !== SIGKILL;
}

function standingOf(
  one: Ended,
  all: { readonly blamed: number | null; readonly anyFailed: boolean },
): Standing {
  if (one.end === "" && one.exitCode === null && one.signal === null) return "running";
  if (one.exitCode === 0) return "succeeded";
  if (one.rank === all.blamed || ownFault(one)) return "failed";
  // Killed, and nobody else failed by itself: then this is the fault.
  return all.anyFailed || all.blamed !== null || one.signal === SIGTERM ? "ended" : "failed";
}

function inOrder(a: PodPlace, b: PodPlace): number {
  if (a.role !== b.role) return a.role === "launcher" ? -1 : 1;
  return lowest(a) - lowest(b) || a.name.localeCompare(b.name, "en", { numeric: true });
}

function lowest(pod: PodPlace): number {
  return Math.min(Number.MAX_SAFE_INTEGER, ...pod.ranks.map((one) => one.rank));
}

export function counted(nodes: readonly NodePlace[]): {
  all: number;
  failed: number;
  ended: number;
} {
  const ranks = nodes.flatMap((node) => node.pods.flatMap((pod) => pod.ranks));
  const of = (standing: Standing) => ranks.filter((one) => one.standing === standing).length;
  return { all: ranks.length, failed: of("failed"), ended: of("ended") };
}
