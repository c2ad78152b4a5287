import { Bullseye, Checkbox, Skeleton } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import type { ReactNode } from "react";
import type { JobItem } from "../api/types";
import { jobKey } from "../app/paths";
import { words } from "../words";
import type { JobAction } from "./actions";
import type { Column } from "./columns";
import type { ListState } from "./listState";
import { RowActions } from "./RowActions";

interface Props {
  jobs: readonly JobItem[] | undefined;
  columns: readonly Column[];
  state: ListState;
  chosen: ReadonlyMap<string, JobItem>;
  /** Instead of rows, where there are none. */
  empty: ReactNode;
  onSort: (column: Column, order: "asc" | "desc") => void;
  onChoose: (jobs: readonly JobItem[], chosen: boolean) => void;
  onAction: (action: JobAction, jobs: readonly JobItem[]) => void;
}

export function JobsTable(props: Props) {
  const { jobs, columns, state, chosen, empty, onSort, onChoose } = props;
  const all = !!jobs?.length && jobs.every((job) => chosen.has(jobKey(job)));
  const sorted = columns.findIndex((one) => one.sort === state.sortBy);
  const sortBy = { index: sorted, direction: state.order };
  return (
    <div className="odh-scroll">
      <Table aria-label={words.jobs.title} variant="compact">
        <Thead>
          <Tr>
            <Th>
              <Checkbox
                id="choose-all"
                aria-label={words.jobs.chooseAll}
                isChecked={all}
                onChange={(_, selected) => onChoose(jobs ?? [], selected)}
              />
            </Th>
            {columns.map((column, index) => (
              <Th
                key={column.name}
                modifier="nowrap"
                sort={
                  column.sort && {
                    columnIndex: index,
                    sortBy,
                    onSort: (_, __, direction) => onSort(column, direction),
                  }
                }
              >
                {words.jobs.columns[column.name]}
              </Th>
            ))}
            <Th screenReaderText={words.jobs.columnActions} />
          </Tr>
        </Thead>
        <Tbody>
          {jobs === undefined && <Loading columns={columns.length} />}
          {jobs?.length === 0 && (
            <Tr>
              <Td colSpan={columns.length + 2}>
                <Bullseye>{empty}</Bullseye>
              </Td>
            </Tr>
          )}
          {jobs?.map((job, index) => (
            <Row key={jobKey(job)} job={job} index={index} {...props} />
          ))}
        </Tbody>
      </Table>
    </div>
  );
}

function Row({
  job,
  index,
  columns,
  chosen,
  onChoose,
  onAction,
}: Props & { job: JobItem; index: number }) {
  return (
    <Tr>
      <Td>
        <Checkbox
          id={`choose-${index}`}
          aria-label={words.jobs.choose(job.name)}
          isChecked={chosen.has(jobKey(job))}
          onChange={(_, selected) => onChoose([job], selected)}
        />
      </Td>
      {columns.map((column) => (
        <Td key={column.name} dataLabel={words.jobs.columns[column.name]}>
          {column.cell(job)}
        </Td>
      ))}
      <Td isActionCell>
        <RowActions job={job} onAction={onAction} />
      </Td>
    </Tr>
  );
}

const ROWS = ["a", "b", "c", "d", "e", "f"];

function Loading({ columns }: { columns: number }) {
  return ROWS.map((row) => (
    <Tr key={row}>
      <Td colSpan={columns + 2}>
        <Skeleton screenreaderText={words.shell.loading} />
      </Td>
    </Tr>
  ));
}
