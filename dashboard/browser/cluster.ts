/**
 * A real API server with the controller and `python -m mpi_trainer.server`, two projects with one
 * person in each, and an administrator: `tests/browser_lab.py`, which this file talks to.
 */
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Browser } from "playwright-core";
import { type Look, type Opened, openWith } from "./browser";

const ROOT = resolve(import.meta.dirname, "../..");

export type Person = "alpha" | "beta" | "admin";

export interface Cluster {
  readonly address: string;
  readonly tokens: Readonly<Record<Person, string>>;
  /** What the lab does for a test: its functions, by name. */
  ask: (what: string, values?: Record<string, unknown>) => Promise<unknown>;
  end: () => Promise<void>;
}

export async function startCluster(): Promise<Cluster> {
  const lab = spawn(resolve(ROOT, ".venv/bin/python"), ["-m", "tests.browser_lab"], {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((done) => lab.once("exit", () => done()));
  const lines = createInterface(lab.stdout)[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the lab has ended");
    return JSON.parse(value as string) as unknown;
  };
  const { address, tokens } = (await next()) as Pick<Cluster, "address" | "tokens">;
  return {
    address,
    tokens,
    ask: (what, values = {}) => {
      lab.stdin.write(`${JSON.stringify({ do: what, ...values })}\n`);
      return next();
    },
    end: () => {
      lab.stdin.end();
      return ended;
    },
  };
}

/** Opens `path` as a person whom a proxy before the server has logged in. */
export function openAs(
  browser: Browser,
  cluster: Cluster,
  token: string,
  path: string,
  options: { look?: Look; width?: number; height?: number } = {},
): Promise<Opened> {
  const login = { "X-Forwarded-Access-Token": token };
  return openWith(browser, new URL(path, cluster.address).href, login, options);
}

/** A call of the REST API in somebody's name. */
export async function call(cluster: Cluster, token: string, method: string, path: string) {
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(new URL(path, cluster.address), { method, headers });
  return { status: answer.status, text: await answer.text() };
}
