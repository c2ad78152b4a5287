/** What happened to the job, its pods and what belongs to it, in one list. */
import {
  EmptyState,
  EmptyStateBody,
  Flex,
  Label,
  Switch,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useAddress } from "../app/address";
import { Ago } from "../components/Ago";
import { words } from "../words";
import { eventKey } from "./eventList";
import type { JobTabProps } from "./tabs";

export default function EventsTab({ events }: JobTabProps) {
  const [search, setSearch] = useAddress();
  const text = words.job.events;
  const newest = search.get("order") !== "oldest";
  const warnings = search.get("type") === "Warning";
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  const shown = events.filter((one) => !warnings || one.type === "Warning");
  if (newest) shown.reverse();
  return (
    <>
      <Flex alignItems={{ default: "alignItemsCenter" }}>
        <ToggleGroup aria-label={text.order}>
          <ToggleGroupItem
            text={text.newestFirst}
            isSelected={newest}
            onChange={() => set("order", "")}
          />
          <ToggleGroupItem
            text={text.oldestFirst}
            isSelected={!newest}
            onChange={() => set("order", "oldest")}
          />
        </ToggleGroup>
        <Switch
          label={text.warnings}
          isChecked={warnings}
          onChange={(_, on) => set("type", on ? "Warning" : "")}
        />
      </Flex>
      {shown.length === 0 ? (
        <EmptyState headingLevel="h2" titleText={text.none}>
          <EmptyStateBody>{text.noneHelp}</EmptyStateBody>
        </EmptyState>
      ) : (
        <Table variant="compact" aria-label={text.title}>
          <Thead>
            <Tr>
              <Th>{text.columns.time}</Th>
              <Th>{text.columns.type}</Th>
              <Th>{text.columns.reason}</Th>
              <Th>{text.columns.message}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {shown.map((one) => (
              <Tr key={eventKey(one)}>
                <Td dataLabel={text.columns.time}>
                  <Ago time={one.time} />
                </Td>
                <Td dataLabel={text.columns.type}>
                  {one.type === "Warning" ? (
                    <Label isCompact status="warning">
                      {text.warning}
                    </Label>
                  ) : (
                    <Label isCompact>{text.normal}</Label>
                  )}
                </Td>
                <Td dataLabel={text.columns.reason}>{one.reason}</Td>
                <Td dataLabel={text.columns.message} className="odh-breaks">
                  {one.message}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}
