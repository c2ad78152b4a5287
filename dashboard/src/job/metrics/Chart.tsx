/** Lines over time. Loaded when a chart is shown; drawn anew when the theme or the width changes. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { words } from "../../words";
import { amount } from "./amounts";
import type { Series } from "./usage";

const HEIGHT = 220;
const COLORS = [
  "--pf-t--chart--color--blue--300",
  "--pf-t--chart--color--orange--300",
  "--pf-t--chart--color--teal--300",
  "--pf-t--chart--color--purple--300",
  "--pf-t--chart--color--yellow--300",
  "--pf-t--chart--color--green--300",
];
/** Lines of series after those with a colour of their own are told apart by their dashes. */
const DASHES = [[], [6, 3], [2, 2], [10, 3, 2, 3]];

export interface ChartProps {
  readonly title: string;
  readonly series: readonly Series[];
  /** whether x is a time of the day, or seconds since some beginning */
  readonly clock?: boolean;
}

export default function Chart({ title, series, clock = true }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      plot = new uPlot(options(element, series, clock), aligned(series), element);
    };
    draw();
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributeFilter: ["class"] });
    const size = new ResizeObserver(() => {
      plot?.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    size.observe(element);
    return () => {
      theme.disconnect();
      size.disconnect();
      plot?.destroy();
    };
  }, [series, clock]);
  return <div ref={box} role="img" aria-label={words.job.metrics.chartLabel(title)} />;
}

function options(element: HTMLElement, series: readonly Series[], clock: boolean): uPlot.Options {
  const styles = getComputedStyle(document.documentElement);
  const color = (name: string) => styles.getPropertyValue(name).trim() || "gray";
  const axis = {
    stroke: color("--pf-t--global--text--color--regular"),
    grid: { stroke: color("--pf-t--global--border--color--default"), width: 1 },
    ticks: { stroke: color("--pf-t--global--border--color--default"), width: 1 },
  };
  const name = series[0]?.name ?? "";
  return {
    width: Math.max(element.clientWidth, 200),
    height: HEIGHT,
    scales: { x: { time: clock, range: (_, least, most) => wide(least, most) } },
    legend: { show: series.length > 1 && series.length <= 12 },
    cursor: { drag: { setScale: false } },
    axes: [
      axis,
      { ...axis, size: 80, values: (_, ticks) => ticks.map((one) => amount(name, one)) },
    ],
    series: [
      { label: clock ? words.job.events.columns.time : words.compare.elapsed },
      ...series.map((one, index) => ({
        label: labelOf(one),
        stroke: color(COLORS[index % COLORS.length] ?? ""),
        width: 2,
        spanGaps: true,
        dash: DASHES[Math.floor(index / COLORS.length) % DASHES.length],
        points: { show: one.points.length < 3 },
      })),
    ],
  };
}

/** One moment alone is shown in the middle of a minute. */
function wide(least: number, most: number): [number, number] {
  return most > least ? [least, most] : [least - 30, least + 30];
}

export function labelOf(series: Series): string {
  if (series.pod) return series.pod;
  return series.rank === null ? series.name : words.job.rank(series.rank);
}

/** All series over the same times: uPlot wants one column of times. */
export function aligned(series: readonly Series[]): uPlot.AlignedData {
  const times = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))];
  times.sort((a, b) => a - b);
  const columns = series.map((one) => {
    const values = new Map(one.points);
    return times.map((time) => values.get(time) ?? null);
  });
  return [times, ...columns];
}
