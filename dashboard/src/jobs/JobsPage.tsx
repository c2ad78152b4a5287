/** All jobs of all kinds: filtered, sorted and paged by the server, current without a reload. */
import { Alert, Button, PageSection } from "@patternfly/react-core";
import { CubesIcon, SearchIcon } from "@patternfly/react-icons";
import { useCallback, useState } from "react";
import { Link } from "react-router";
import type { JobItem } from "../api/types";
import { useAddress } from "../app/address";
import { useNamespace } from "../app/namespace";
import { jobKey, paths } from "../app/paths";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { TeachingEmptyState } from "../components/TeachingEmptyState";
import { words } from "../words";
import { type JobAction, useJobAction } from "./actions";
import { BulkActions } from "./BulkActions";
import { ColumnsMenu } from "./ColumnsMenu";
import { useColumns } from "./columns";
import { DeleteDialog } from "./DeleteDialog";
import { JobsTable } from "./JobsTable";
import { JobsToolbar } from "./JobsToolbar";
import { changed, isFiltered, type ListState, listState } from "./listState";
import { Pages } from "./Pages";
import { useJobs } from "./useJobs";
import "./jobs.css";

export default function JobsPage() {
  const [search, setSearch] = useAddress();
  const { namespace } = useNamespace();
  const state = listState(search);
  const jobs = useJobs(namespace, state);
  const columns = useColumns(namespace);
  const [chosen, setChosen] = useState<ReadonlyMap<string, JobItem>>(new Map());
  const [deleting, setDeleting] = useState<readonly JobItem[] | null>(null);
  const action = useJobAction();
  const change = useCallback(
    (part: Partial<ListState>) => setSearch((before) => changed(before, part)),
    [setSearch],
  );
  const choose = (items: readonly JobItem[], yes: boolean) =>
    setChosen((before) => {
      const after = new Map(before);
      for (const job of items) {
        if (yes) after.set(jobKey(job), job);
        else after.delete(jobKey(job));
      }
      return after;
    });
  const act = (what: JobAction, items: readonly JobItem[]) => {
    if (what === "delete") setDeleting(items);
    else action.mutate({ action: what, jobs: items });
  };
  // A job may have changed since it was chosen.
  const now = new Map(jobs.data?.items.map((job) => [jobKey(job), job]));
  const chosenNow = [...chosen].map(([key, job]) => now.get(key) ?? job);
  return (
    <>
      <PageHeading title={words.jobs.title} about={words.jobs.about} actions={<CreateButton />} />
      <PageSection hasBodyWrapper={false} isFilled>
        {jobs.error && (
          <ProblemAlert
            title={words.jobs.cannotList}
            error={jobs.error}
            retry={() => void jobs.refetch()}
          />
        )}
        {jobs.data?.notes.map((note) => (
          <Alert component="p" key={note} isInline isPlain variant="info" title={note} />
        ))}
        <div>
          <JobsToolbar
            state={state}
            list={jobs.data}
            onChange={change}
            bulk={
              <BulkActions chosen={chosenNow} onAction={act} onClear={() => setChosen(new Map())} />
            }
            columns={<ColumnsMenu shown={columns.shown} onToggle={columns.toggle} />}
            pages={
              jobs.data && (
                <Pages
                  state={state}
                  total={jobs.data.total}
                  next={jobs.data.continue}
                  onChange={change}
                />
              )
            }
          />
          {(jobs.data || !jobs.error) && (
            <JobsTable
              jobs={jobs.data?.items}
              columns={columns.shown}
              state={state}
              chosen={chosen}
              empty={
                <Nothing
                  filtered={isFiltered(state)}
                  onClear={() => setSearch(() => new URLSearchParams())}
                />
              }
              onSort={({ sort }, order) => change({ sortBy: sort, order })}
              onChoose={choose}
              onAction={act}
            />
          )}
        </div>
      </PageSection>
      {deleting && (
        <DeleteDialog
          jobs={deleting}
          onClose={() => setDeleting(null)}
          onDelete={() => {
            action.mutate({ action: "delete", jobs: deleting });
            choose(deleting, false);
            setDeleting(null);
          }}
        />
      )}
    </>
  );
}

function CreateButton() {
  return (
    <Button component={(props) => <Link {...props} to={paths.create} />}>
      {words.jobs.create}
    </Button>
  );
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const text = words.jobs.empty;
  if (filtered) {
    return (
      <TeachingEmptyState
        title={text.filtered}
        icon={SearchIcon}
        action={
          <Button variant="link" onClick={onClear}>
            {words.jobs.clearFilters}
          </Button>
        }
      >
        {text.filteredHint}
      </TeachingEmptyState>
    );
  }
  return (
    <TeachingEmptyState
      title={text.title}
      icon={CubesIcon}
      command={text.command}
      action={<CreateButton />}
    >
      {text.body}
    </TeachingEmptyState>
  );
}
