import { MenuToggle } from "@patternfly/react-core";
import { EllipsisVIcon } from "@patternfly/react-icons";
import { ActionsColumn, type IAction } from "@patternfly/react-table";
import { useState } from "react";
import { useNavigate } from "react-router";
import type { JobItem } from "../api/types";
import { clonePath, jobPath } from "../app/paths";
import { usePermissions } from "../app/permissions";
import { inMain } from "../components/menus";
import { words } from "../words";
import { type JobAction, refusal, rightFor } from "./actions";

/** The menu of one job. Rights are asked for when it is opened, not for every row. */
export function RowActions({
  job,
  onAction,
}: {
  job: JobItem;
  onAction: (action: JobAction, jobs: readonly JobItem[]) => void;
}) {
  const navigate = useNavigate();
  const [opened, setOpened] = useState(false);
  const may = usePermissions(opened ? job.namespace : "");
  const item = (action: JobAction): IAction => {
    const why = refusal(action, job) || may(rightFor(action, job.kind)).reason;
    return {
      title: words.jobs.actions[action],
      onClick: () => onAction(action, [job]),
      isAriaDisabled: why !== "",
      tooltipProps: why ? { content: why } : undefined,
      isDanger: action === "delete",
    };
  };
  const items: IAction[] = [
    { title: words.jobs.viewLogs, onClick: () => navigate(jobPath(job, "logs")) },
    { title: words.jobs.clone, onClick: () => navigate(clonePath(job)) },
    { isSeparator: true },
    item(job.suspend ? "resume" : "suspend"),
    item("restart"),
    { isSeparator: true },
    item("delete"),
  ];
  return (
    <ActionsColumn
      items={items}
      actionsToggle={({ onToggle, isOpen, toggleRef }) => (
        <MenuToggle
          ref={toggleRef}
          variant="plain"
          icon={<EllipsisVIcon />}
          aria-label={words.jobs.actionsOf(job.name)}
          isExpanded={isOpen}
          onClick={(event) => {
            setOpened(true);
            onToggle(event);
          }}
        />
      )}
      popperProps={{ position: "right", ...inMain }}
    />
  );
}
