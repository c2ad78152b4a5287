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
  job: "Job",
  waits: "Waits for",
  since: "Since",
  place: "Place",
};
