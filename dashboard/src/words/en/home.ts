export const home = {
  title: "Home",
  about: "Your training jobs at a glance.",
  cannotShow: "The overview cannot be shown",
  range: "Time range",
  ranges: { 24: "24 hours", 168: "7 days", 720: "30 days" },
  within: { 24: "in 24 hours", 168: "in 7 days", 720: "in 30 days" },
  figures: {
    total: "Jobs",
    now: (running: number, waiting: number, suspended: number) =>
      `${running} running, ${waiting} waiting, ${suspended} suspended`,
    success: "Success rate",
    ended: (succeeded: number, failed: number) => `${succeeded} succeeded, ${failed} failed`,
    average: "Average duration",
    gpus: "GPUs in use",
    cpus: "CPUs in use",
    rightNow: "right now",
    notMeasured: "not measured here",
    gpuHours: "GPU hours",
  },
  running: "Running",
  waiting: "Waiting",
  failedLately: "Failed lately",
  none: {
    running: "Nothing runs now.",
    waiting: "Nothing waits.",
    failedLately: "Nothing failed in this time.",
  },
  all: {
    running: "All running jobs",
    waiting: "All waiting jobs",
    failedLately: "All failed jobs",
  },
  first: {
    title: "Start your first job",
    body: "A job runs one program on several workers, which MPI connects: training on more than one machine or GPU. Create one here, or from a terminal.",
  },
};
