/** The lines of a store that a filter takes, kept current while lines come. */
import { useEffect, useRef, useState } from "react";
import { words } from "../words";
import { BadExpression, WorkerExpression } from "./expression";
import { FilteredLines, type LineFilter } from "./filter";
import type { LogStore } from "./store";

/** Milliseconds of looking at lines before the page may do something else. */
const STEP_MS = 12;

export interface Filtered {
  readonly lines: FilteredLines;
  readonly version: number;
  readonly searching: boolean;
  /** why the expression is not used; empty where it is */
  readonly wrong: string;
}

export function useFiltered(store: LogStore, filter: LineFilter): Filtered {
  const [generation, setGeneration] = useState(store.generation);
  const [state, setState] = useState<Filtered>(() => ({
    lines: new FilteredLines(store.buffer, filter),
    version: 0,
    searching: false,
    wrong: "",
  }));
  const turns = useRef(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a generation is another buffer
  useEffect(() => {
    let stopped = false;
    let busy = false;
    let wrong = "";
    let matches: WorkerExpression | null = null;
    try {
      matches = expressionOf(filter);
    } catch (error) {
      if (!(error instanceof BadExpression)) throw error;
      wrong = words.logs.badExpression(error.message);
    }
    const used = wrong ? { ...filter, text: "", expression: false } : filter;
    const lines = new FilteredLines(store.buffer, used, matches);
    const tell = (searching: boolean) => {
      turns.current += 1;
      setState({ lines, version: turns.current, searching, wrong });
    };
    const work = async () => {
      if (busy) return;
      busy = true;
      try {
        let told = performance.now();
        while (!stopped && (await lines.step(STEP_MS))) {
          if (performance.now() - told > 150) {
            tell(true);
            told = performance.now();
          }
          await pause();
        }
      } catch (error) {
        wrong = error instanceof Error ? error.message : String(error);
      }
      busy = false;
      if (!stopped) tell(false);
    };
    const unsubscribe = store.subscribe((from) => {
      if (store.buffer === lines.buffer) {
        lines.changed(from);
        void work();
      } else setGeneration(store.generation);
    });
    void work();
    return () => {
      stopped = true;
      unsubscribe();
      matches?.stop();
    };
  }, [store, filter, generation]);
  return state;
}

function expressionOf(filter: LineFilter): WorkerExpression | null {
  if (!filter.expression || filter.text === "") return null;
  return new WorkerExpression(filter.text, words.logs.slowExpression);
}

/** Lets the page draw, and is not slowed down as timers are. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}
