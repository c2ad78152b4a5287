/** All ranks' lines on one time line: what is chosen is in the address. */
import { Alert, Button, EmptyState, EmptyStateBody, Skeleton } from "@patternfly/react-core";
import { useEffect, useMemo, useState } from "react";
import { useAddress } from "../app/address";
import { useToasts } from "../app/toasts";
import { ProblemAlert } from "../components/ProblemAlert";
import type { JobTabProps } from "../job/tabs";
import { words } from "../words";
import { cleared, filterOf, type LogView, numberOf, viewOf, withView } from "./address";
import type { LogBuffer } from "./buffer";
import { download, exported, type Format } from "./exportLines";
import type { FilteredLines } from "./filter";
import { LogList, type Rows } from "./LogList";
import { LogToolbar } from "./LogToolbar";
import { useFiltered } from "./useFiltered";
import { type Logs, useLogs } from "./useLogs";

const ERROR = 3;

export default function LogsTab({ place, job, status }: JobTabProps) {
  const [search, setSearch] = useAddress();
  const view = useMemo(() => viewOf(search), [search]);
  const finished = job.state === "Succeeded" || job.state === "Failed";
  const source = { attempt: numberOf(view.attempt), allPods: view.allPods === "1" };
  const logs = useLogs(place, source, finished);
  const change = (changes: Partial<LogView>) =>
    setSearch((before) => withView(before, changes), { replace: true });
  const attempts = useMemo(
    () => (status?.attempts ?? []).map((one) => one.attempt),
    [status?.attempts],
  );
  return (
    <LogViewer
      logs={logs}
      view={view}
      change={change}
      clear={() => setSearch(cleared, { replace: true })}
      attempts={attempts}
      finished={finished}
      name={job.name}
    />
  );
}

interface ViewerProps {
  readonly logs: Logs;
  readonly view: LogView;
  readonly change: (changes: Partial<LogView>) => void;
  readonly clear: () => void;
  readonly attempts: readonly number[];
  readonly finished: boolean;
  readonly name: string;
}

export function LogViewer(props: ViewerProps) {
  const { logs, view, change, finished, name } = props;
  const { store } = logs;
  const toasts = useToasts();
  const filter = useMemo(() => filterOf(view), [view]);
  const { lines, version, searching, wrong } = useFiltered(store, filter);
  const [follow, setFollow] = useState(!finished && view.find === "");
  const [found, setFound] = useState<{ number: number; asked: number } | null>(null);
  const { buffer } = store;
  const rows = useMemo(() => rowsOf(lines, lines.buffer), [lines]);

  const show = (number: number, missing: string) => {
    if (number < 0) return toasts.done(missing);
    setFollow(false);
    setFound((before) => ({ number, asked: (before?.asked ?? 0) + 1 }));
  };
  useFind(view.find, lines, version, logs.loading || searching, (number) =>
    show(number, words.logs.notFound),
  );
  const save = async (format: Format) => {
    const content = await exported(lines.size, (index) => rows.line(index), format);
    download(content, `${name}-log.${format === "text" ? "txt" : "jsonl"}`);
  };
  return (
    <>
      <LogToolbar
        view={view}
        change={change}
        clear={props.clear}
        pods={buffer.pods}
        attempts={props.attempts}
        wrong={wrong}
        follow={follow}
        onFollow={setFollow}
        onFirstError={() => show(firstError(lines, rows), words.logs.noError)}
        onExport={(format) => void save(format)}
      />
      {logs.error ? <ProblemAlert title={words.logs.failed} error={logs.error} /> : null}
      {buffer.first > 0 && (
        <Alert
          component="h2"
          isInline
          isPlain
          variant="info"
          title={words.logs.dropped(buffer.first)}
        />
      )}
      <p className="odh-muted odh-number">
        {words.logs.shown(lines.size, buffer.size)}
        {" · "}
        {searching ? words.logs.searching : standing(store.ended, logs.live)}
        {store.older || (buffer.size >= 10_000 && buffer.first === 0) ? (
          <>
            {" · "}
            <Button
              variant="link"
              isInline
              onClick={() =>
                void logs.loadOlder().catch((error) => toasts.failed(words.logs.failed, error))
              }
            >
              {words.logs.older}
            </Button>
          </>
        ) : null}
      </p>
      {lines.size > 0 ? (
        <LogList rows={rows} version={version} follow={follow} onFollow={setFollow} found={found} />
      ) : (
        <Nothing
          loading={logs.loading || searching}
          written={buffer.size > 0}
          finished={finished}
          failed={!!logs.error}
        />
      )}
    </>
  );
}

function standing(ended: boolean, live: boolean): string {
  if (ended) return words.logs.complete;
  return live ? words.logs.live : words.logs.polled;
}

function rowsOf(lines: FilteredLines, buffer: LogBuffer): Rows {
  return {
    get size() {
      return lines.size;
    },
    line: (index) => buffer.get(lines.number(index)),
    indexOf: (number) => lines.indexOf(number),
  };
}

function firstError(lines: FilteredLines, rows: Rows): number {
  for (let index = 0; index < lines.size; index += 1) {
    const line = rows.line(index);
    if (line && line.level === ERROR && !line.note) return line.number;
  }
  return -1;
}

/** Goes once to the line that the address names, as soon as it is there. */
function useFind(
  text: string,
  lines: FilteredLines,
  version: number,
  waiting: boolean,
  show: (number: number) => void,
): void {
  const [done, setDone] = useState("");
  // biome-ignore lint/correctness/useExhaustiveDependencies: looks again whenever lines came
  useEffect(() => {
    if (text === "" || done === text) return;
    const number = lines.buffer.findText(text);
    if (number < 0 && waiting) return;
    if (number < 0 && lines.buffer.size === 0) return;
    setDone(text);
    show(number);
  }, [text, version, waiting, done]);
}

function Nothing(props: {
  loading: boolean;
  written: boolean;
  finished: boolean;
  failed: boolean;
}) {
  const text = words.logs;
  if (props.failed) return null;
  if (props.loading) {
    return <Skeleton height="20rem" screenreaderText={text.loading} />;
  }
  if (props.written) return <EmptyState headingLevel="h2" titleText={text.noMatch} />;
  return (
    <EmptyState headingLevel="h2" titleText={props.finished ? text.noneEnded : text.none}>
      <EmptyStateBody>{props.finished ? text.noneEndedHelp : text.noneHelp}</EmptyStateBody>
    </EmptyState>
  );
}
