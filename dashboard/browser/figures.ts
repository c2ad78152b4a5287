/** What a test has measured, for a file that is kept: where `FIGURES` names one. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

/** Adds to what is in the file under this name, with how busy the machine was. */
export function figures(name: string, found: Record<string, unknown>): void {
  const path = process.env.FIGURES;
  if (!path) return;
  const before = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as object) : {};
  const load = Math.round((loadavg()[0] ?? 0) * 10) / 10;
  const all = { ...before, [name]: { ...found, cores: cpus().length, load } };
  writeFileSync(path, `${JSON.stringify(all, null, 1)}\n`);
}

/** Of milliseconds: half are at most `p50`, all but one in twenty at most `p95`. */
export function quantiles(times: readonly number[]) {
  const ordered = [...times].sort((a, b) => a - b);
  const at = (share: number) =>
    Math.round(ordered[Math.min(ordered.length - 1, Math.floor(share * ordered.length))] ?? 0);
  return { count: times.length, p50: at(0.5), p95: at(0.95), most: at(1) };
}
