/** What can be done with a job; what cannot is disabled and says why. */
import { Button, Tooltip } from "@patternfly/react-core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { request } from "../api/client";
import type { Job } from "../api/types";
import { clonePath, paths } from "../app/paths";
import { type Action, usePermissions } from "../app/permissions";
import { useToasts } from "../app/toasts";
import { words } from "../words";
import { Confirm } from "./Confirm";
import { type JobPlace, kindOf, placeNames } from "./place";
import { type ActionName, pointless } from "./situation";
import { jobKeys } from "./useJob";

type Change = Exclude<ActionName, "clone">;

const RIGHTS = {
  suspend: "change",
  resume: "change",
  restart: "change",
  clone: "create",
  delete: "delete",
};

export function JobActions({ place, job }: { place: JobPlace; job: Job }) {
  const may = usePermissions(place.namespace);
  const navigate = useNavigate();
  const [asked, setAsked] = useState<Change | null>(null);
  const change = useChange(place, job);
  const text = words.job.actions;

  const why = (action: ActionName) => {
    const right = `${RIGHTS[action]}-${place.kindPath}` as Action;
    return may(right).reason || pointless(action, job);
  };
  const button = (action: ActionName, run: () => void, danger = false) => (
    <ActionButton
      key={action}
      reason={why(action)}
      label={text[action]}
      danger={danger}
      run={run}
    />
  );
  return (
    <div className="odh-job-actions">
      {job.suspend && job.state !== "Succeeded" && job.state !== "Failed"
        ? button("resume", () => change.mutate("resume"))
        : button("suspend", () => setAsked("suspend"))}
      {button("restart", () => setAsked("restart"))}
      {button("clone", () => navigate(clonePath({ ...place, kind: kindOf(place) })))}
      {button("delete", () => setAsked("delete"), true)}
      {asked && asked !== "resume" && (
        <Confirm
          action={asked}
          name={job.name}
          busy={change.isPending}
          onCancel={() => setAsked(null)}
          onConfirm={() =>
            change.mutate(asked, {
              onSettled: () => setAsked(null),
              onSuccess: () =>
                asked === "delete" && navigate(`${paths.jobs}?namespace=${place.namespace}`),
            })
          }
        />
      )}
    </div>
  );
}

/** Makes a change and tells what came of it. */
function useChange(place: JobPlace, job: Job) {
  const client = useQueryClient();
  const toasts = useToasts();
  const path = `/api/v1/namespaces/{namespace}/${place.kindPath}/{name}`;
  const text = words.job.actions;
  return useMutation({
    mutationFn: async (action: Change) => {
      const options = { path: placeNames(place) };
      if (action !== "delete") return request("POST", `${path}/${action}`, options);
      return request("DELETE", path, options);
    },
    onSuccess: (answer, action) => {
      const told = {
        suspend: text.suspended,
        resume: text.resumed,
        restart: text.restarted,
        delete: answer ? text.deleting : text.deleted,
      }[action];
      toasts.done(told(job.name));
      if (action === "delete") client.removeQueries({ queryKey: jobKeys(place).all });
      else void client.invalidateQueries({ queryKey: jobKeys(place).all });
      void client.invalidateQueries({ queryKey: ["jobs"] });
    },
    onError: (error, action) => toasts.failed(text.failed[action] ?? "", error),
  });
}

function ActionButton({
  label,
  reason,
  danger,
  run,
}: {
  label: string;
  reason: string;
  danger: boolean;
  run: () => void;
}) {
  const button = (
    <Button
      variant="secondary"
      isDanger={danger}
      isAriaDisabled={reason !== ""}
      onClick={reason ? undefined : run}
    >
      {label}
    </Button>
  );
  return reason ? <Tooltip content={reason}>{button}</Tooltip> : button;
}
