// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type Json, type JsonObject, same, withAt, withoutAt } from "./json";
import * as mpijob from "./mpijob";
import { claims, inContainers, rows, withNewClaim, withNewRow, withoutRow } from "./pods";
import { edited, LARGEST, offsetOf, parse, stringify } from "./yamlText";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** Every MPIJob and TrainJob of the examples and of the goldens. */
function manifests(): [string, string][] {
  const folders = ["examples", "tests/golden"];
  const files = folders.flatMap((folder) =>
    readdirSync(root + folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /(^|\/)(in|mpijob|trainjob|job|[\w-]*(mpi)?job[\w-]*)\.yaml$/.test(name))
      .map((name) => `${folder}/${name}`),
  );
  return files.flatMap((name) =>
    readFileSync(root + name, "utf8")
      .split(/^---$/m)
      .filter((text) => /^kind: (MPIJob|TrainJob)$/m.test(text))
      .map((text): [string, string] => [name, text]),
  );
}

const found = manifests();

function read(text: string): JsonObject {
  const parsed = parse(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.fault));
  return parsed.manifest;
}

/** Every change that a field of the form makes to an MPIJob. */
const EDITS: Record<string, (job: JsonObject) => JsonObject> = {
  name: (job) => mpijob.withText(job, ["metadata", "name"], "other"),
  workers: (job) => mpijob.withWorkers(job, 7),
  slots: (job) => mpijob.withSlots(job, 3),
  image: (job) => mpijob.withImage(job, "example.com/other:1"),
  gpus: (job) => mpijob.withGpus(job, mpijob.NVIDIA, 5),
  cpu: (job) => mpijob.withResource(job, mpijob.worker.container, "cpu", "3"),
  queue: (job) => mpijob.withQueue(job, "team"),
  priority: (job) => mpijob.withPriority(job, "high"),
  clean: (job) => mpijob.withText(job, ["spec", "runPolicy", "cleanPodPolicy"], "All"),
  asWorker: (job) => mpijob.withLauncherAsWorker(job, true),
  claim: (job) =>
    withNewClaim(job, mpijob.roles(job), { claim: "data", path: "/data", readOnly: true }),
  env: (job) =>
    withNewRow(job, inContainers(mpijob.roles(job), "env"), { name: "A", value: "yes" }),
};

test("the examples are found", () => {
  expect(found.length).toBeGreaterThan(20);
});

describe("what the form does not touch stays", () => {
  test.each(found)("%s", (_name, text) => {
    const before = read(text);
    expect(read(stringify(before))).toEqual(before);
    expect(edited(text, before)).toBe(text);
    for (const edit of Object.values(EDITS)) {
      const after = before.kind === "MPIJob" ? edit(before) : withAt(before, ["x"], 1);
      const made = edited(text, after as JsonObject);
      expect(read(made)).toEqual(after);
      // And back again: nothing but the field has changed.
      expect(read(edited(made, before))).toEqual(before);
    }
  });
});

test("an edit changes one line, and keeps comments, order and quotes", () => {
  const text = [
    "# My job.",
    "apiVersion: kubeflow.org/v2beta1",
    "kind: MPIJob",
    "metadata:",
    "  name: train # the name",
    "spec:",
    "  slotsPerWorker: 2",
    "  unknownField: {a: [1, 'two']}",
    "",
  ].join("\n");
  const job = mpijob.withText(read(text), ["metadata", "name"], "other");
  expect(edited(text, job)).toBe(text.replace("name: train", "name: other"));
});

test("text that kubectl reads as something else is quoted", () => {
  const job = { a: "yes", b: "on", c: "12", d: "1e3", e: "null", f: "~", g: "true", h: "0x1f" };
  expect(read(stringify(job))).toEqual(job);
  const text = stringify({ a: "x" });
  expect(edited(text, { a: "off" })).toMatch(/a: ["']off["']/);
});

test("times and dates stay the text that they are", () => {
  expect(read("a: 2026-01-02\nb: 22:22\nc: 0o17\n")).toEqual({
    a: "2026-01-02",
    b: "22:22",
    c: "0o17",
  });
});

test("aliases are written out when the form edits, and mean the same", () => {
  const text = "a: &x {b: 1, c: [2]}\nd: *x\n";
  const made = edited(text, withAt(read(text), ["a", "b"], 5) as JsonObject);
  expect(read(made)).toEqual({ a: { b: 5, c: [2] }, d: { b: 1, c: [2] } });
});

describe("what is not one object is refused with the reason", () => {
  test.each([
    ["a: [1", "syntax"],
    ["a: 1\na: 2", "syntax"],
    ["", "empty"],
    ["- a", "object"],
    ["a: 1\n---\nb: 2", "several"],
    ["a: .inf", "key"],
    [`a: ${"[".repeat(300)}${"]".repeat(300)}`, "key"],
    ["x".repeat(LARGEST + 1), "size"],
  ])("%.20s", (text, kind) => {
    const parsed = parse(text);
    expect(parsed.ok ? "ok" : parsed.fault.kind).toBe(kind);
  });

  test("aliases that would grow without end", () => {
    const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (const [one, next] of ["ab", "bc", "cd", "de", "ef"].map((pair) => pair.split("")))
      bomb.push(`${next}: &${next} [${Array(9).fill(`*${one}`).join(",")}]`);
    expect(parse(bomb.join("\n")).ok).toBe(false);
  });
});

test("a syntax error says its line", () => {
  const parsed = parse("a: 1\nb: [1\nc: 2\n");
  expect(parsed.ok ? null : parsed.fault).toMatchObject({ kind: "syntax", line: 3 });
});

test("a field is found in the text, or what is nearest around it", () => {
  const text = "spec:\n  a:\n    b: 1\n";
  expect(text.slice(offsetOf(text, ["spec", "a", "b"]))).toMatch(/^b: 1/);
  expect(text.slice(offsetOf(text, ["spec", "a", "missing"]))).toMatch(/^a:/);
});

describe("lists that launcher and workers share", () => {
  const pod = (env: Json[]): Json => ({
    template: { spec: { containers: [{ name: "mpi", env }] } },
  });
  const A = { name: "A", value: "1" };
  const B = { name: "B", value: "2" };
  const job: JsonObject = {
    spec: { mpiReplicaSpecs: { Launcher: pod([A]), Worker: pod([B, A]) } },
  };
  const lists = inContainers(mpijob.roles(job), "env");

  test("equal entries are one row, others stand for their role", () => {
    const shown = rows(job, lists).map((row) => [row.entry.name, [...row.places.keys()]]);
    expect(shown).toEqual([
      ["A", ["Launcher", "Worker"]],
      ["B", ["Worker"]],
    ]);
  });

  test("a row that is removed goes from each of its roles, and leaves no empty list", () => {
    const [first] = rows(job, lists);
    const after = first ? withoutRow(job, lists, first) : job;
    expect(
      mpijob.roles(after).map((role) => rows(after, inContainers([role], "env")).length),
    ).toEqual([0, 1]);
    expect(same(after, withoutAt(after, ["nothing"]))).toBe(true);
  });

  test("a claim is one row of both roles", () => {
    const after = withNewClaim(job, mpijob.roles(job), { claim: "c", path: "/c", readOnly: false });
    expect(claims(after, mpijob.roles(after))).toMatchObject([
      { claim: "c", path: "/c", readOnly: false, roles: ["Launcher", "Worker"] },
    ]);
  });
});
