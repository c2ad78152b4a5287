/** A state as every page shows it: word, colour and icon, never colour alone. */
import { Label, type LabelProps } from "@patternfly/react-core";
import {
  CheckCircleIcon,
  ExclamationCircleIcon,
  HourglassHalfIcon,
  InProgressIcon,
  PauseCircleIcon,
  SyncAltIcon,
} from "@patternfly/react-icons";
import type { JobItem } from "../api/types";
import { words } from "../words";

export type State = JobItem["state"];

const LOOKS: Record<State, Pick<LabelProps, "color" | "status" | "icon">> = {
  Created: { color: "purple", icon: <HourglassHalfIcon /> },
  Running: { color: "blue", icon: <InProgressIcon /> },
  Restarting: { status: "warning", icon: <SyncAltIcon /> },
  Suspended: { color: "grey", icon: <PauseCircleIcon /> },
  Succeeded: { status: "success", icon: <CheckCircleIcon /> },
  Failed: { status: "danger", icon: <ExclamationCircleIcon /> },
};

export function StatusLabel({ state }: { state: State }) {
  return (
    <Label isCompact variant="outline" {...LOOKS[state]}>
      {words.states[state]}
    </Label>
  );
}
