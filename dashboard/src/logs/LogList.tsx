/**
 * Lines as rows of which only those in view exist. The order and the place of every row are
 * computed (`scroll.ts`); nothing is measured but rows that are opened.
 */
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";
import { words } from "../words";
import type { Line } from "./line";
import "./logs.css";
import {
  moved,
  type Opened,
  type Position,
  physicalHeight,
  positionOf,
  ROW,
  rowAt,
  topOf,
  wholeHeight,
} from "./scroll";

const OVERSCAN = 12;
/** Characters of a line in one row; more of it is there when it is opened. */
const SHORT = 600;
const LONG = 110;

export interface Rows {
  readonly size: number;
  line(index: number): Line | undefined;
  /** Where the line with a number is, or the next one. */
  indexOf(number: number): number;
}

interface Props {
  readonly rows: Rows;
  /** changes with the content of `rows` */
  readonly version: number;
  readonly follow: boolean;
  readonly onFollow: (follow: boolean) => void;
  /** a line that is looked for, and how often it was asked for */
  readonly found: { readonly number: number; readonly asked: number } | null;
}

export function LogList({ rows, version, follow, onFollow, found }: Props) {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState(0);
  const [position, setPosition] = useState<Position>({ place: 0, scrolled: 0 });
  const [open, setOpen] = useState<ReadonlyMap<number, number>>(new Map());
  const opened = useMemo(() => openedRows(rows, open), [rows, open]);
  const whole = wholeHeight(rows.size, opened);
  const latest = useRef({ position, whole, view });
  latest.current = { position, whole, view };

  const goTo = useCallback((place: number) => {
    const next = positionOf(place, latest.current);
    latest.current.position = next;
    if (box.current) box.current.scrollTop = next.scrolled;
    setPosition(next);
  }, []);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const look = () => setView(element.clientHeight);
    look();
    if (typeof ResizeObserver === "undefined") return undefined;
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines come with `version`
  useLayoutEffect(() => {
    if (follow) goTo(Number.MAX_SAFE_INTEGER);
  }, [follow, version, whole, view, goTo]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: goes there once for each time it is asked
  useLayoutEffect(() => {
    if (found && view) goTo(topOf(rows.indexOf(found.number), opened) - view / 3);
  }, [found?.number, found?.asked, view === 0, goTo]);

  const onScroll = () => {
    const element = box.current;
    const before = latest.current.position;
    if (!element || Math.abs(element.scrollTop - before.scrolled) < 1) return;
    const next = moved(before, element.scrollTop, latest.current);
    const end = latest.current.whole - latest.current.view;
    if (follow !== next.place >= end - ROW) onFollow(!follow);
    latest.current.position = next;
    setPosition(next);
  };
  const toggle = useCallback((number: number) => {
    setOpen((before) => {
      const after = new Map(before);
      if (!after.delete(number)) after.set(number, 0);
      return after;
    });
  }, []);
  const measured = useCallback((number: number, height: number) => {
    setOpen((before) => {
      if (!before.has(number) || before.get(number) === height) return before;
      return new Map(before).set(number, height);
    });
  }, []);

  const first = Math.max(0, rowAt(position.place, opened) - OVERSCAN);
  const last = Math.min(rows.size, rowAt(position.place + view, opened) + OVERSCAN);
  const shown: Line[] = [];
  for (let index = first; index < last; index += 1) {
    const line = rows.line(index);
    if (line) shown.push(line);
  }
  const top = position.scrolled + topOf(first, opened) - position.place;
  return (
    <section
      ref={box}
      className="odh-log"
      onScroll={onScroll}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
      tabIndex={0}
      aria-label={words.logs.region}
    >
      <div style={{ height: physicalHeight(whole), width: 1 }} />
      {/* biome-ignore lint/a11y/useSemanticElements: rows of a table element cannot be placed */}
      <div
        role="table"
        aria-label={words.logs.label}
        aria-rowcount={rows.size}
        className="odh-log__rows"
        style={{ transform: `translateY(${top}px)` }}
      >
        {shown.map((line, index) => (
          <Row
            key={line.number}
            line={line}
            index={first + index}
            open={open.has(line.number)}
            found={found?.number === line.number}
            onToggle={toggle}
            onHeight={measured}
          />
        ))}
      </div>
    </section>
  );
}

/** Opened rows in the order of their places. */
function openedRows(rows: Rows, open: ReadonlyMap<number, number>): Opened[] {
  const found: Opened[] = [];
  for (const [number, height] of open) {
    const index = rows.indexOf(number);
    if (rows.line(index)?.number === number) {
      found.push({ index, extra: Math.max(0, height - ROW) });
    }
  }
  return found.sort((a, b) => a.index - b.index);
}

interface RowProps {
  readonly line: Line;
  readonly index: number;
  readonly open: boolean;
  readonly found: boolean;
  readonly onToggle: (number: number) => void;
  readonly onHeight: (number: number, height: number) => void;
}

/** A pod's name without that of its job, which is on the page already. */
function role(pod: string): string {
  return /.*-((?:launcher|worker|node)(?:-.*)?)$/.exec(pod)?.[1] ?? pod;
}

const Row = memo(function Row({ line, index, open, found, onToggle, onHeight }: RowProps) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (open && element.current) onHeight(line.number, element.current.offsetHeight);
  });
  const level = line.note ? 255 : line.level;
  const name = [
    "odh-log__row",
    line.note ? "odh-log__row--note" : `odh-log__row--${level}`,
    found ? "odh-log__row--found" : "",
  ].join(" ");
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    // biome-ignore lint/a11y/useFocusableInteractive: a row is read, not operated
    <div ref={element} role="row" aria-rowindex={index + 1} className={name}>
      <Cell name="odh-log__time">{timeOf(line.time)}</Cell>
      <Cell name="odh-log__source" title={line.pod}>
        {line.note ? "" : line.rank === null ? role(line.pod) : words.job.rank(line.rank)}
      </Cell>
      <Cell name="odh-log__level" title={words.logs.levels[level]}>
        {words.logs.levelMarks[level] ?? ""}
      </Cell>
      <Cell name={open ? "odh-log__text odh-log__text--open" : "odh-log__text"}>
        {open || line.text.length <= SHORT ? line.text : `${line.text.slice(0, SHORT)}…`}
      </Cell>
      {line.text.length > LONG && (
        // biome-ignore lint/a11y/useSemanticElements: see above
        <span role="cell">
          <button
            type="button"
            className="odh-log__more"
            aria-expanded={open}
            aria-label={open ? words.logs.collapse : words.logs.expand}
            onClick={() => onToggle(line.number)}
          >
            {open ? "−" : "+"}
          </button>
        </span>
      )}
    </div>
  );
});

function Cell({ name, title, children }: { name: string; title?: string; children: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    <span role="cell" className={name} title={title}>
      {children}
    </span>
  );
}

/** `13:05:09.250`, in the reader's own time zone. */
function timeOf(time: number): string {
  const date = new Date(time);
  const two = (number: number) => String(number).padStart(2, "0");
  const seconds = `${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return `${two(date.getHours())}:${two(date.getMinutes())}:${seconds}`;
}
