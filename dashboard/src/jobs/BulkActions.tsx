import {
  Button,
  Divider,
  Dropdown,
  DropdownItem,
  DropdownList,
  MenuToggle,
} from "@patternfly/react-core";
import { useState } from "react";
import { useNavigate } from "react-router";
import type { JobItem } from "../api/types";
import { comparePath } from "../app/paths";
import { inMain } from "../components/menus";
import { words } from "../words";
import { type JobAction, refusal } from "./actions";

const MOST_COMPARED = 4;
const ACTIONS: readonly JobAction[] = ["suspend", "resume", "delete"];

/** Acts on those of the chosen jobs that allow it, and says how many those are. */
export function BulkActions({
  chosen,
  onAction,
  onClear,
}: {
  chosen: readonly JobItem[];
  onAction: (action: JobAction, jobs: readonly JobItem[]) => void;
  onClear: () => void;
}) {
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const text = words.jobs;
  const comparable = chosen.length >= 2 && chosen.length <= MOST_COMPARED;
  return (
    <>
      <Dropdown
        isOpen={isOpen}
        onOpenChange={setOpen}
        popperProps={inMain}
        onSelect={() => setOpen(false)}
        toggle={(ref) => (
          <MenuToggle
            ref={ref}
            isExpanded={isOpen}
            isDisabled={chosen.length === 0}
            onClick={() => setOpen(!isOpen)}
          >
            {chosen.length ? text.withChosen(chosen.length) : text.withNone}
          </MenuToggle>
        )}
      >
        <DropdownList>
          {ACTIONS.map((action) => {
            const fit = chosen.filter((job) => refusal(action, job) === "");
            const why = fit.length ? "" : text.fitsNone(action);
            return (
              <DropdownItem
                key={action}
                isDanger={action === "delete"}
                isAriaDisabled={fit.length === 0}
                description={
                  why || (fit.length < chosen.length ? text.fits(fit.length) : undefined)
                }
                onClick={() => fit.length && onAction(action, fit)}
              >
                {text.actions[action]}
              </DropdownItem>
            );
          })}
          <Divider component="li" />
          <DropdownItem
            isAriaDisabled={!comparable}
            description={comparable ? undefined : text.compareHow}
            onClick={() => comparable && navigate(comparePath(chosen))}
          >
            {text.compare}
          </DropdownItem>
        </DropdownList>
      </Dropdown>
      {chosen.length > 0 && (
        <Button variant="link" onClick={onClear}>
          {text.clearChoice}
        </Button>
      )}
    </>
  );
}
