/** 1st, 2nd, 3rd, 11th. */
function ordinal(number: number): string {
  const ten = number % 100 >= 11 && number % 100 <= 13 ? 0 : number % 10;
  return `${number}${["th", "st", "nd", "rd"][ten] ?? "th"}`;
}

const jobsWait = (count: number) => (count === 1 ? "1 job waits" : `${count} jobs wait`);

export const queues = {
  title: "Queues",
  about:
    "A job that names a queue starts when all of it fits into the queue's quota; until then it waits its turn.",
  list: "Queues of this project",
  columns: {
    name: "Queue",
    clusterQueue: "Cluster queue",
    admitted: "Running",
    pending: "Waiting",
    actions: "Actions",
  },
  jobs: (name: string) => `Show jobs of ${name}`,
  showJobs: "Show jobs",
  none: "This project has no queues",
  noneHelp:
    "Without Kueue, or without a LocalQueue here, jobs start as soon as their pods find room. An administrator can add a queue, so that GPUs are shared fairly and jobs start whole.",
  failed: "The queues could not be read",
  quota: "Quota of the project",
  noQuota: "This project has no ResourceQuota: only the cluster's size limits its jobs.",
  quotaFailed: "The quota could not be read",
  used: (resource: string, used: string, hard: string) => `${resource}: ${used} of ${hard} in use`,
  bar: (quota: string, resource: string) => `${resource} of quota ${quota}`,
  order: "Jobs that wait, the oldest first",
  orderOf: (name: string) => `Waiting in ${name}`,
  ahead: (count: number) => (count === 0 ? "next" : `${count} ahead`),
  orderNote:
    "By their time of creation, among the jobs that you may see. Priority, and jobs of other projects in the same cluster queue, may change the order.",
  placeShort: (place: number, of: number) =>
    of >= place ? `${ordinal(place)} of ${of}` : ordinal(place),
  placeOf: (place: number, of: number, queue: string) =>
    `${ordinal(place)} of ${of} that wait in ${queue}`,
  pendingIn: (count: number, queue: string) => `${jobsWait(count)} in ${queue}`,
  clusterPlace: (place: number, queue: string) => `${ordinal(place)} in all of ${queue}`,
  clusterWaits: (count: number) => `${count} in all`,
  orderTold: "Jobs that wait, the next first",
  orderKnown:
    "As the cluster orders them now, by priority and time; jobs of other projects that wait for the same quota are counted.",
  priority: "Priority",
  inCluster: "In the cluster queue",
  clusterQueues: "What the cluster queues have",
  clusterQueue: (name: string) => `Cluster queue ${name}`,
  resource: (resource: string, flavor: string, used: string, nominal: string) =>
    `${resource} (${flavor}): ${used} of ${nominal} in use`,
  job: "Job",
  waits: "Waits for",
  since: "Since",
  place: "Place",
};
