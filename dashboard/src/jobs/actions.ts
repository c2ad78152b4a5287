/** What can be done to jobs that are there: which of them allow it, and doing it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ProblemError, remove, request } from "../api/client";
import { type JobItem, kindPath } from "../api/types";
import type { Action as Right } from "../app/permissions";
import { useToasts } from "../app/toasts";
import { problemText } from "../components/ProblemAlert";
import { words } from "../words";

export type JobAction = "suspend" | "resume" | "delete" | "restart";
export type ActedOn = Pick<
  JobItem,
  "kind" | "namespace" | "name" | "state" | "suspend" | "readOnly"
>;

const AT_ONCE = 4;

export function isFinished(job: Pick<JobItem, "state">): boolean {
  return job.state === "Succeeded" || job.state === "Failed";
}

/** Why an action makes no sense for a job; empty where it does. */
export function refusal(action: JobAction, job: ActedOn): string {
  const text = words.jobs.refusals;
  if (job.readOnly) return text.readOnly(job.kind);
  if (action === "suspend" && isFinished(job)) return text.finished;
  if (action === "suspend" && job.suspend) return text.suspended;
  if (action === "resume" && !job.suspend) return text.notSuspended;
  return "";
}

export function rightFor(action: JobAction, kind: string): Right {
  return `${action === "delete" ? "delete" : "change"}-${kindPath(kind)}`;
}

async function act(action: JobAction, job: ActedOn): Promise<void> {
  const path = { namespace: job.namespace, name: job.name };
  const base = `/api/v1/namespaces/{namespace}/${kindPath(job.kind)}/{name}` as const;
  if (action !== "delete") await request("POST", `${base}/${action}`, { path });
  else {
    await remove(base, { path }).catch((error: unknown) => {
      // Somebody else was quicker: it is gone, as was wanted.
      if (!(error instanceof ProblemError && error.status === 404)) throw error;
    });
  }
}

/** Does it to all, a few at a time; what fails does not keep the others from it. */
async function actOnAll(action: JobAction, jobs: readonly ActedOn[]) {
  const waiting = [...jobs];
  const failed: { job: ActedOn; error: unknown }[] = [];
  const work = async () => {
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      try {
        await act(action, job);
      } catch (error) {
        failed.push({ job, error });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failed;
}

export function useJobAction() {
  const client = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: ({ action, jobs }: { action: JobAction; jobs: readonly ActedOn[] }) =>
      actOnAll(action, jobs),
    onSuccess: (failed, { action, jobs }) => {
      const done = jobs.length - failed.length;
      const name = jobs.length === 1 ? jobs[0]?.name : undefined;
      if (done) toasts.done(words.jobs.done[action](done, name));
      for (const { job, error } of failed.slice(0, 3)) {
        toasts.failed(words.jobs.notDone(action, job.name), new Error(problemText(error)));
      }
      if (failed.length > 3) {
        toasts.failed(words.jobs.moreNotDone(failed.length - 3), new Error(""));
      }
    },
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ["jobs"] });
      void client.invalidateQueries({ queryKey: ["overview"] });
    },
  });
}
