import { words } from "../../words";
import type { UsageHistory } from "../metrics/usage";

const WIDTH = 100;
const HEIGHT = 20;

/** CPU use of one pod since the page was opened; nothing where nobody measures it. */
export function Sparkline({ pod, usage }: { pod: string; usage: UsageHistory }) {
  const points = usage.points(pod, "cpus");
  const last = points.at(-1);
  if (points.length < 2 || !last) return null;
  const most = Math.max(...points.map((one) => one[1]), 0.01);
  const begin = points[0]?.[0] ?? 0;
  const whole = last[0] - begin || 1;
  const line = points
    .map(([time, value]) => {
      const x = ((time - begin) / whole) * WIDTH;
      return `${x.toFixed(1)},${(HEIGHT - (value / most) * (HEIGHT - 2) - 1).toFixed(1)}`;
    })
    .join(" ");
  return (
    <svg
      className="odh-spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words.job.workers.cpuTrend(pod, last[1].toFixed(2))}
    >
      <polyline
        points={line}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
