// Made by `make docs` from docs/openapi.json; do not edit.

/** This server, and who the caller is to it. `backend` is `local`, or the cluster's address. `grafana` is the address of a dashboard by `var-namespace` and `var-mpijob`, or empty. */
export interface About {
  version: string;
  backend: string;
  user: string;
  grafana: string;
}

/** One that has ended, and why; `rank` and `host` are whose fault it was, where known. */
export interface Attempt {
  attempt: number;
  reason: string;
  message: string;
  began: string | null;
  ended: string | null;
  rank: number | null;
  host: string;
}

/** A side that has no value there is left out. */
export interface Change {
  field: string;
  cluster?: unknown;
  file?: unknown;
}

/** A copy of a job under another name, with changes; what is not given stays as it is. */
export interface CloneRequest {
  name: string;
  workers?: number | null;
  slots?: number | null;
  image?: string | null;
  command?: string[] | null;
  env?: Record<string, string>;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastUpdateTime: string | null;
  lastTransitionTime: string | null;
}

/** The reader was too slow and is cut off; `position` is where to go on. */
export interface Cut {
  position: string;
}

export interface DeletedJob {
  kind: string;
  namespace: string;
  name: string;
  uid: string;
}

export interface Difference {
  kind: string;
  name: string;
  state: string;
  changes: Change[];
}

/** Empty where applying the file would change nothing. */
export interface Differences {
  items: Difference[];
  warnings: string[];
}

/** What would be refused, a sentence for each thing to mend; nothing is made. */
export interface DryRun {
  accepted: boolean;
  refusals: string[];
  warnings: string[];
}

/** One job as a command line for a POSIX shell, as a program of the SDK, and as YAML. Each makes the same job; values of its variables stand in all of them. */
export interface Equivalents {
  cli: string;
  sdk: string;
  yaml: string;
}

export interface Event {
  time: string;
  type: string;
  reason: string;
  message: string;
}

/** Oldest first. */
export interface EventList {
  items: Event[];
}

/** How many jobs each value would take, beside the other filters: the most frequent ones. */
export interface Facets {
  state: Record<string, number>;
  kind: Record<string, number>;
  queue: Record<string, number>;
  runtime: Record<string, number>;
  owner: Record<string, number>;
  namespace: Record<string, number>;
}

/** Why a job failed. `line` is the one that shows it; `remedy` is what to do. */
export interface Finding {
  cause: string;
  confidence: "certain" | "likely" | "possible" | "suspicion";
  title: string;
  remedy: string;
  ranks: number[];
  hosts: string[];
  line: string;
  followed: string[];
  instead: string;
}

/** The most likely cause first; nothing where the job shows no failure. */
export interface Findings {
  items: Finding[];
}

export interface Gpu {
  gpu: string;
  model: string;
  percent: number | null;
  memoryBytes: number | null;
  memoryTotalBytes: number | null;
}

/** A job of any kind. `manifest` is the object as its own API has it. */
export interface Job {
  kind: string;
  namespace: string;
  name: string;
  uid: string;
  state: "Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended";
  reason: string;
  message: string;
  suspend: boolean;
  workers: number;
  slots: number;
  implementation: string;
  image: string;
  command: string[];
  created: string | null;
  started: string | null;
  completed: string | null;
  deleted: string | null;
  manifest: Record<string, unknown>;
}

/** A job in a list. `gpus` are those of all its pods; `owner` is who created it, where its annotations say so; a job that is `readOnly` is of a kind that this API does not change. */
export interface JobItem {
  kind: string;
  namespace: string;
  name: string;
  state: "Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended";
  reason: string;
  message: string;
  created: string;
  started: string | null;
  completed: string | null;
  workers: number;
  slots: number;
  implementation: string;
  progress: Progress | null;
  uid: string;
  resourceVersion: string;
  gpus: number;
  queue: string;
  runtime: string;
  owner: string;
  suspend: boolean;
  readOnly: boolean;
  waitsFor: string;
}

/** A page. `continue` asks for the next one, and is empty on the last; `total` counts all jobs that the filters take. `notes` say which jobs are not in the list, and why. */
export interface JobList {
  items: JobItem[];
  total: number;
  continue: string;
  facets: Facets;
  notes: string[];
}

/** Where a job stands. `waitsFor` is what a job that does not run yet waits for; `missing` says how many lines of its output are gone, and why. */
export interface JobStatus {
  kind: string;
  namespace: string;
  name: string;
  state: "Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended";
  reason: string;
  message: string;
  started: string | null;
  completed: string | null;
  launcher: Replicas;
  workers: Replicas;
  conditions: Condition[];
  pods: Pod[];
  ranks: Rank[];
  attempts: Attempt[];
  progress: Progress | null;
  waitsFor: string;
  missing: string;
}

/** What reading a runtime shows: an error would fail where a job runs. */
export interface Lint {
  severity: "error" | "warning";
  field: string;
  message: string;
  remedy: string;
}

/** All jobs that the stream is about, as they are now: forget those of before. */
export interface LiveJobs {
  items: JobItem[];
}

/** Lines in the order of their coming; `skipped` counts those before them that are gone. */
export interface LiveLines {
  items: LogLine[];
  skipped: number;
}

/** The job has ended, and all that it wrote was sent. */
export interface LogEnd {
  state: "Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended";
}

/** `lost` counts lines before this one that are gone; `notes` are for the reader, before it. */
export interface LogLine {
  time: string;
  pod: string;
  stream: "stderr" | "stdout";
  rank: number | null;
  text: string;
  attempt: number;
  lost: number;
  notes: string[];
}

/** Oldest first. `cut` says that lines before these, or the ends of long ones, were left out. */
export interface LogLines {
  items: LogLine[];
  cut: boolean;
}

/** Each point is a time in epoch seconds and a value. `rank` is null where it is not known or the pod runs several; values that the program printed have no unit. */
export interface MetricSeries {
  name: string;
  pod: string;
  rank: number | null;
  unit: string;
  points: ([number, number])[];
}

/** What a job says of itself and uses; `notes` say what is not known, why, and what to do. */
export interface Metrics {
  metrics: Record<string, number>;
  progress: Progress | null;
  seconds: number | null;
  cpus: number | null;
  memoryBytes: number | null;
  peakMemoryBytes: number | null;
  pods: PodUsage[];
  source: string;
  notes: string[];
}

/** `source` says where the series come from; `notes` say what is missing, and why. */
export interface MetricsHistory {
  series: MetricSeries[];
  source: string;
  notes: string[];
}

/** Those that the caller can see; `default` is where a job goes that names none. `projects` are the same with the names that people gave them, which may be empty. */
export interface NamespaceList {
  items: string[];
  default: string;
  projects: Project[];
}

/** Jobs at a glance. `total`, `states`, `gpusInUse` and `cpusInUse` are of now; the rest counts what ended, or ran, within the last `hours`. `waiting` are the longest waiting first, the other lists newest first; `projects` those that hold most first, and none where one was asked for. `notes` say what is not known, and why. */
export interface Overview {
  hours: number;
  total: number;
  states: Record<string, number>;
  succeeded: number;
  failed: number;
  successRate: number | null;
  averageSeconds: number | null;
  gpusInUse: number;
  cpusInUse: number | null;
  gpuHours: number;
  running: JobItem[];
  waiting: JobItem[];
  failedLately: JobItem[];
  projects: ProjectUse[];
  notes: string[];
}

/** `reason` says why something is not allowed, and what to do. */
export interface Permission {
  action: string;
  allowed: boolean;
  reason: string;
}

/** What the caller may do with jobs of a namespace. Whether the cluster serves that kind of jobs is another question. */
export interface PermissionList {
  items: Permission[];
}

/** `end` is how it ended, in words; the values after it say the same. */
export interface Pod {
  name: string;
  role: "launcher" | "worker";
  index: number;
  phase: string;
  ready: boolean;
  address: string;
  node: string;
  end: string;
  exitCode: number | null;
  signal: number | null;
  reason: string;
}

export interface PodUsage {
  pod: string;
  cpus: number | null;
  memoryBytes: number | null;
  peakMemoryBytes: number | null;
  gpus: Gpu[];
}

/** RFC 9457. `detail` and `hint` are what `odh` says of the same mistake. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  hint?: string;
  errors?: WrongField[];
}

/** How far the program says it is; `metrics` are the last values it printed, such as loss. */
export interface Progress {
  step: number | null;
  total: number | null;
  unit: string;
  fraction: number | null;
  etaSeconds: number | null;
  metrics: Record<string, number>;
}

export interface Project {
  name: string;
  displayName: string;
}

/** What the jobs of one namespace hold now, and held within the time. */
export interface ProjectUse {
  namespace: string;
  jobs: number;
  running: number;
  waiting: number;
  gpusInUse: number;
  gpuHours: number;
}

/** A queue that jobs of its namespace may name; `pending` and `admitted` count its jobs. The last three are null where you may not read them, or the cluster does not say them. */
export interface Queue {
  namespace: string;
  name: string;
  clusterQueue: string;
  pending: number;
  admitted: number;
  resources: QueueResource[] | null;
  clusterPending: number | null;
  waiting: WaitingJob[] | null;
}

export interface QueueList {
  items: Queue[];
}

/** What a ClusterQueue has of a resource in one flavor, and what admitted jobs hold of it. */
export interface QueueResource {
  flavor: string;
  resource: string;
  nominal: string;
  used: string;
}

/** A limit of a ResourceQuota, such as of `requests.nvidia.com/gpu`, and what is used of it. */
export interface Quota {
  name: string;
  resource: string;
  hard: string;
  used: string;
}

export interface QuotaList {
  items: Quota[];
}

export interface Rank {
  rank: number;
  pod: string;
  address: string;
  end: string;
  exitCode: number | null;
  signal: number | null;
  reason: string;
}

/** The objects that a controller would make, in their order; Secrets without their keys. */
export interface Rendered {
  items: (Record<string, unknown>)[];
  warnings: string[];
}

export interface Replicas {
  wanted: number;
  active: number;
  succeeded: number;
  failed: number;
}

/** What TrainJobs can name; `numNodes` holds where a job says none. */
export interface Runtime {
  name: string;
  kind: string;
  namespace: string;
  framework: string;
  numNodes: number;
  manifest: Record<string, unknown>;
}

/** `usedBy` are TrainJobs of this namespace that name it; `notes` say what is not known. */
export interface RuntimeDetails {
  name: string;
  kind: string;
  namespace: string;
  framework: string;
  numNodes: number;
  manifest: Record<string, unknown>;
  usedBy: string[];
  lint: Lint[];
  notes: string[];
}

export interface RuntimeList {
  items: Runtime[];
}

/** Whether a runtime or a job works. `text` is what `odh runtime test` says. Latency and bandwidth are those between the two pods, one way; null where they were not measured. */
export interface TestReport {
  passed: boolean;
  summary: string;
  steps: TestStep[];
  text: string;
  seconds: number;
  latencySeconds: number | null;
  bytesPerSecond: number | null;
}

/** One thing that a test tried; `passed` is null where it was not tried, and why in `detail`. */
export interface TestStep {
  name: string;
  passed: boolean | null;
  detail: string;
  remedy: string;
}

/** A job's place in its queue, and among all jobs of the ClusterQueue, counted from 1. */
export interface WaitingJob {
  kind: string;
  name: string;
  position: number;
  clusterPosition: number;
  priority: number;
}

/** One thing that is wrong: where, what, and what to do. `position` is a place in the body. */
export interface WrongField {
  field: string;
  message: string;
  remedy?: string;
  position?: string;
}

export interface Operations {
  "GET /api/v1": { query: Record<string, never>; answer: About };
  "GET /api/v1/namespaces": { query: Record<string, never>; answer: NamespaceList };
  "GET /api/v1/namespaces/{namespace}/permissions": { query: Record<string, never>; answer: PermissionList };
  "GET /api/v1/namespaces/{namespace}/runtimes": { query: Record<string, never>; answer: RuntimeList };
  "GET /api/v1/namespaces/{namespace}/runtimes/{name}": { query: { kind?: "" | "ClusterTrainingRuntime" | "TrainingRuntime" }; answer: RuntimeDetails };
  "GET /api/v1/namespaces/{namespace}/quota": { query: Record<string, never>; answer: QuotaList };
  "GET /api/v1/namespaces/{namespace}/queues": { query: Record<string, never>; answer: QueueList };
  "GET /api/v1/jobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string }; answer: JobList };
  "GET /api/v1/namespaces/{namespace}/jobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string }; answer: JobList };
  "GET /api/v1/mpijobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string }; answer: JobList };
  "GET /api/v1/namespaces/{namespace}/mpijobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string }; answer: JobList };
  "POST /api/v1/namespaces/{namespace}/mpijobs": { query: Record<string, never>; answer: Job };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}": { query: Record<string, never>; answer: Job };
  "DELETE /api/v1/namespaces/{namespace}/mpijobs/{name}": { query: Record<string, never>; answer: Job };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/status": { query: Record<string, never>; answer: JobStatus };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/events": { query: Record<string, never>; answer: EventList };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/metrics": { query: Record<string, never>; answer: Metrics };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/metrics/history": { query: { minutes?: number }; answer: MetricsHistory };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/explain": { query: Record<string, never>; answer: Findings };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/equivalents": { query: Record<string, never>; answer: Equivalents };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/logs": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; rank?: number | null; worker?: number | null; pod?: string; allPods?: boolean }; answer: LogLines };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/logs/launcher": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null }; answer: LogLines };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/logs/worker/{index}": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null }; answer: LogLines };
  "POST /api/v1/namespaces/{namespace}/mpijobs/{name}/suspend": { query: Record<string, never>; answer: Job };
  "POST /api/v1/namespaces/{namespace}/mpijobs/{name}/resume": { query: Record<string, never>; answer: Job };
  "POST /api/v1/namespaces/{namespace}/mpijobs/{name}/restart": { query: Record<string, never>; answer: Job };
  "POST /api/v1/namespaces/{namespace}/mpijobs/{name}/clone": { query: Record<string, never>; answer: Job };
  "GET /api/v1/trainjobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string }; answer: JobList };
  "GET /api/v1/namespaces/{namespace}/trainjobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string }; answer: JobList };
  "POST /api/v1/namespaces/{namespace}/trainjobs": { query: Record<string, never>; answer: Job };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}": { query: Record<string, never>; answer: Job };
  "DELETE /api/v1/namespaces/{namespace}/trainjobs/{name}": { query: Record<string, never>; answer: Job };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/status": { query: Record<string, never>; answer: JobStatus };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/events": { query: Record<string, never>; answer: EventList };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/metrics": { query: Record<string, never>; answer: Metrics };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/metrics/history": { query: { minutes?: number }; answer: MetricsHistory };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/explain": { query: Record<string, never>; answer: Findings };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/equivalents": { query: Record<string, never>; answer: Equivalents };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/logs": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; rank?: number | null; worker?: number | null; pod?: string; allPods?: boolean }; answer: LogLines };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/logs/launcher": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null }; answer: LogLines };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/logs/worker/{index}": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null }; answer: LogLines };
  "POST /api/v1/namespaces/{namespace}/trainjobs/{name}/suspend": { query: Record<string, never>; answer: Job };
  "POST /api/v1/namespaces/{namespace}/trainjobs/{name}/resume": { query: Record<string, never>; answer: Job };
  "POST /api/v1/namespaces/{namespace}/trainjobs/{name}/restart": { query: Record<string, never>; answer: Job };
  "GET /api/mpijobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string; namespace?: string }; answer: JobList };
  "POST /api/mpijobs": { query: { namespace?: string }; answer: Job };
  "GET /api/mpijobs/{name}": { query: { namespace?: string }; answer: Job };
  "DELETE /api/mpijobs/{name}": { query: { namespace?: string }; answer: Job };
  "GET /api/mpijobs/{name}/status": { query: { namespace?: string }; answer: JobStatus };
  "GET /api/mpijobs/{name}/events": { query: { namespace?: string }; answer: EventList };
  "GET /api/mpijobs/{name}/metrics": { query: { namespace?: string }; answer: Metrics };
  "GET /api/mpijobs/{name}/metrics/history": { query: { minutes?: number; namespace?: string }; answer: MetricsHistory };
  "GET /api/mpijobs/{name}/explain": { query: { namespace?: string }; answer: Findings };
  "GET /api/mpijobs/{name}/equivalents": { query: { namespace?: string }; answer: Equivalents };
  "GET /api/mpijobs/{name}/logs": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; rank?: number | null; worker?: number | null; pod?: string; allPods?: boolean; namespace?: string }; answer: LogLines };
  "GET /api/mpijobs/{name}/logs/launcher": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; namespace?: string }; answer: LogLines };
  "GET /api/mpijobs/{name}/logs/worker/{index}": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; namespace?: string }; answer: LogLines };
  "POST /api/mpijobs/{name}/suspend": { query: { namespace?: string }; answer: Job };
  "POST /api/mpijobs/{name}/resume": { query: { namespace?: string }; answer: Job };
  "POST /api/mpijobs/{name}/restart": { query: { namespace?: string }; answer: Job };
  "POST /api/mpijobs/{name}/clone": { query: { namespace?: string }; answer: Job };
  "GET /api/trainjobs": { query: { state?: ("Created" | "Failed" | "Restarting" | "Running" | "Succeeded" | "Suspended")[]; name?: string; labelSelector?: string; implementation?: string; kind?: string[]; queue?: string[]; runtime?: string[]; owner?: string[]; sortBy?: "created" | "duration" | "gpus" | "kind" | "name" | "namespace" | "progress" | "queue" | "state" | "workers"; order?: "asc" | "desc" | null; limit?: number; continue?: string; namespace?: string }; answer: JobList };
  "POST /api/trainjobs": { query: { namespace?: string }; answer: Job };
  "GET /api/trainjobs/{name}": { query: { namespace?: string }; answer: Job };
  "DELETE /api/trainjobs/{name}": { query: { namespace?: string }; answer: Job };
  "GET /api/trainjobs/{name}/status": { query: { namespace?: string }; answer: JobStatus };
  "GET /api/trainjobs/{name}/events": { query: { namespace?: string }; answer: EventList };
  "GET /api/trainjobs/{name}/metrics": { query: { namespace?: string }; answer: Metrics };
  "GET /api/trainjobs/{name}/metrics/history": { query: { minutes?: number; namespace?: string }; answer: MetricsHistory };
  "GET /api/trainjobs/{name}/explain": { query: { namespace?: string }; answer: Findings };
  "GET /api/trainjobs/{name}/equivalents": { query: { namespace?: string }; answer: Equivalents };
  "GET /api/trainjobs/{name}/logs": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; rank?: number | null; worker?: number | null; pod?: string; allPods?: boolean; namespace?: string }; answer: LogLines };
  "GET /api/trainjobs/{name}/logs/launcher": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; namespace?: string }; answer: LogLines };
  "GET /api/trainjobs/{name}/logs/worker/{index}": { query: { tail?: number; since?: string | null; until?: string | null; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; namespace?: string }; answer: LogLines };
  "POST /api/trainjobs/{name}/suspend": { query: { namespace?: string }; answer: Job };
  "POST /api/trainjobs/{name}/resume": { query: { namespace?: string }; answer: Job };
  "POST /api/trainjobs/{name}/restart": { query: { namespace?: string }; answer: Job };
  "GET /api/v1/overview": { query: { namespace?: string; hours?: number }; answer: Overview };
  "POST /api/v1/namespaces/{namespace}/plan/render": { query: Record<string, never>; answer: Rendered };
  "POST /api/v1/namespaces/{namespace}/plan/dry-run": { query: Record<string, never>; answer: DryRun };
  "POST /api/v1/namespaces/{namespace}/plan/equivalents": { query: Record<string, never>; answer: Equivalents };
  "POST /api/v1/namespaces/{namespace}/plan/diff": { query: Record<string, never>; answer: Differences };
  "POST /api/v1/namespaces/{namespace}/runtimes/{name}/test": { query: { kind?: "" | "ClusterTrainingRuntime" | "TrainingRuntime"; timeout?: number; smokeRun?: boolean }; answer: TestReport };
  "POST /api/v1/namespaces/{namespace}/plan/test": { query: { timeout?: number; smokeRun?: boolean }; answer: TestReport };
  "GET /api/v1/live/jobs": { query: { namespace?: string; kind?: string[]; lastEventId?: string }; answer: undefined };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/live": { query: { lastEventId?: string }; answer: undefined };
  "GET /api/v1/namespaces/{namespace}/mpijobs/{name}/logs/live": { query: { rank?: number | null; worker?: number | null; launcher?: boolean; pod?: string; allPods?: boolean; tail?: number; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; lastEventId?: string }; answer: undefined };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/live": { query: { lastEventId?: string }; answer: undefined };
  "GET /api/v1/namespaces/{namespace}/trainjobs/{name}/logs/live": { query: { rank?: number | null; worker?: number | null; launcher?: boolean; pod?: string; allPods?: boolean; tail?: number; contains?: string; level?: "" | "debug" | "error" | "info" | "warning"; attempt?: number | null; lastEventId?: string }; answer: undefined };
}
