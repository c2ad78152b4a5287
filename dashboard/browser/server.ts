/**
 * A real `odh dashboard` over the local backend, for all browser tests of a run, with real jobs in
 * several states. A job has one rank, since this machine runs as many at once as it has CPUs, and
 * one of them runs all the time. Its jobs lie in a folder of its own, and end with it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TestProject } from "vitest/node";

const ODH = resolve(import.meta.dirname, "../../.venv/bin/odh");
export const LONG_NAME = "a-long-name-that-somebody-made-up-to-see-what-happens";

declare module "vitest" {
  interface ProvidedContext {
    /** With the token that a browser exchanges for a cookie. */
    address: string;
  }
}

interface Made {
  name: string;
  command: string;
  suspend?: boolean;
  workers?: number;
  slots?: number;
  /** what each worker asks for; a core for each slot without it */
  resources?: Record<string, string>;
}

interface Job extends Made {
  /** What it is to have reached before tests begin. */
  state: string;
}

export const JOBS: readonly Job[] = [
  { name: "hello", command: "echo hello", state: "Succeeded" },
  { name: "fails", command: "echo no checkpoint >&2; exit 3", state: "Failed" },
  {
    name: "runs",
    command: "for i in $(seq 1 900); do echo step $i/900 loss 0.$i; sleep 1; done",
    state: "Running",
  },
  { name: "held", command: "echo held", suspend: true, state: "Suspended" },
  { name: LONG_NAME, command: "echo long", suspend: true, state: "Suspended" },
];

export interface Served {
  address: string;
  end: (signal: "SIGTERM" | "SIGKILL") => Promise<void>;
}

/** `odh dashboard` over the jobs in the folder `state`, on any free port if none is given. */
export async function serve(state: string, port?: string): Promise<Served> {
  const options = ["--no-browser", ...(port ? ["--port", port] : [])];
  const server = spawn(ODH, ["--backend", "local", "dashboard", ...options], {
    env: { ...process.env, XDG_STATE_HOME: state },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = new Promise<void>((done) => server.once("exit", () => done()));
  const end = (signal: "SIGTERM" | "SIGKILL") => {
    server.kill(signal);
    return ended;
  };
  return { address: await printed(server), end };
}

export function stateFolder(): { state: string; remove: () => void } {
  const state = mkdtempSync(join(tmpdir(), "dashboard-"));
  return { state, remove: () => rmSync(state, { recursive: true, force: true }) };
}

export default async function setup(project: TestProject) {
  const { state, remove } = stateFolder();
  const { address, end } = await serve(state);
  const api = new Api(address);
  const stop = async () => {
    await api.clear();
    await end("SIGTERM");
    remove();
  };
  try {
    for (const job of JOBS) {
      await api.create(job);
      await api.reaches(job.name, job.state);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide("address", address);
  return stop;
}

function printed(server: ChildProcess): Promise<string> {
  return new Promise((done, failed) => {
    let text = "";
    server.stdout?.on("data", (data: Buffer) => {
      text += data.toString();
      if (text.includes("\n")) done(text.trim());
    });
    server.once("exit", (code) => failed(new Error(`odh dashboard ended with ${code}`)));
  });
}

/** The REST API, by the token of the address: what a test needs beside the browser. */
export class Api {
  private readonly namespace: string;
  private readonly base: string;
  private readonly token: string;

  constructor(address: string) {
    const url = new URL(address);
    this.namespace = `${url.origin}/api/v1/namespaces/default`;
    this.base = `${this.namespace}/mpijobs`;
    this.token = url.searchParams.get("token") ?? "";
  }

  async create(job: Made): Promise<void> {
    await this.ask("POST", "", manifest(job));
  }

  async reaches(name: string, state: string): Promise<void> {
    const until = Date.now() + 90_000;
    for (;;) {
      const job = (await this.ask("GET", `/${name}/status`)) as { state: string };
      if (job.state === state) return;
      if (Date.now() > until) throw new Error(`not ${state} in time: ${JSON.stringify(job)}`);
      await new Promise((done) => setTimeout(done, 200));
    }
  }

  /** What tests have made ends, and leaves its cores to the next ones. */
  async tidy(): Promise<void> {
    await this.clear(JOBS.map(({ name }) => name));
  }

  async clear(but: readonly string[] = []): Promise<void> {
    for (const kind of ["mpijobs", "trainjobs"]) {
      const path = `${this.namespace}/${kind}`;
      const { items } = (await this.ask("GET", "?limit=500", undefined, path)) as {
        items: { name: string }[];
      };
      const others = items.filter(({ name }) => !but.includes(name));
      await Promise.all(others.map(({ name }) => this.ask("DELETE", `/${name}`, undefined, path)));
    }
  }

  private async ask(
    method: string,
    path: string,
    body?: unknown,
    base = this.base,
  ): Promise<unknown> {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }
}

function manifest({ name, command, suspend = false, workers = 1, slots = 1, resources }: Made) {
  const pod = (container: object) => ({
    spec: { containers: [{ image: "local", name: "mpi", ...container }] },
  });
  return {
    apiVersion: "kubeflow.org/v2beta1",
    kind: "MPIJob",
    metadata: { name, namespace: "default" },
    spec: {
      slotsPerWorker: slots,
      runPolicy: { cleanPodPolicy: "Running", backoffLimit: 0, suspend },
      mpiReplicaSpecs: {
        Launcher: {
          replicas: 1,
          template: pod({ command: ["mpirun", "-n", `${workers * slots}`, "sh", "-c", command] }),
          restartPolicy: "Never",
        },
        Worker: {
          replicas: workers,
          template: pod({ resources: { requests: resources ?? {} } }),
          restartPolicy: "Never",
        },
      },
    },
  };
}
