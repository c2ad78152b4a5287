// @vitest-environment node
import { describe, expect, test } from "vitest";
import { isAbout, ofDryRun, ofRefusal, pathOf, read, stepOf } from "./problems";

test("a sentence of the server is a field and words about it", () => {
  const text = "spec.slotsPerWorker: Invalid value: 0: must be at least 1; set it to 1";
  expect(read(text, "error")).toEqual({
    field: "spec.slotsPerWorker",
    text: "Invalid value: 0: must be at least 1; set it to 1",
    level: "error",
  });
  expect(read("metadata.labels[example.com/x]: Invalid value", "error").field).toBe(
    "metadata.labels[example.com/x]",
  );
  expect(read("exceeded quota: a sentence", "warning").field).toBe("");
});

test("a refusal without fields is one problem, with the hint", () => {
  const found = ofRefusal({ detail: "the body holds no job", hint: "Send one.", errors: [] });
  expect(found).toEqual([{ field: "", text: "the body holds no job. Send one.", level: "error" }]);
});

test("the same words are told once", () => {
  const found = ofDryRun({ refusals: ["kind: a", "kind: a"], warnings: ["kind: a"] });
  expect(found.map((one) => one.level)).toEqual(["error", "warning"]);
});

test("a problem is about its field and what is around it, not about a longer name", () => {
  const problem = read("spec.runPolicy.backoffLimit: no", "error");
  expect(isAbout(problem, "spec.runPolicy")).toBe(true);
  expect(isAbout(problem, "spec.runPolicy.backoffLimit")).toBe(true);
  expect(isAbout(problem, "spec.run")).toBe(false);
});

test("a field's name is a path", () => {
  expect(pathOf("a.b[0].c")).toEqual(["a", "b", 0, "c"]);
  expect(pathOf("metadata.labels[example.com/x]")).toEqual(["metadata", "labels", "example.com/x"]);
});

describe("every field has a step that shows it", () => {
  test.each([
    ["metadata.name", "basics"],
    ["spec.runtimeRef.name", "basics"],
    ["spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].image", "program"],
    ["spec.trainer.command[0]", "program"],
    ["spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu", "resources"],
    ["spec.mpiReplicaSpecs.Worker.replicas", "resources"],
    ["spec.slotsPerWorker", "resources"],
    ["spec.runPolicy.cleanPodPolicy", "advanced"],
    ["spec.mpiReplicaSpecs.Worker.template.spec.volumes[0].name", "advanced"],
    ["spec.mpiReplicaSpecs.Worker.template.spec.initContainers[0].name", "review"],
    ["", "review"],
  ])("%s is on %s", (field, step) => {
    expect(stepOf(field)).toBe(step);
  });
});
