import { describe, expect, test } from "vitest";
import { refusal, rightFor } from "./actions";

const job = {
  kind: "MPIJob",
  namespace: "a",
  name: "x",
  state: "Running" as const,
  suspend: false,
  readOnly: false,
};

describe("an action", () => {
  test("that makes no sense for a job is refused with the reason", () => {
    expect(refusal("suspend", job)).toBe("");
    expect(refusal("resume", job)).toBe("It is not suspended.");
    expect(refusal("suspend", { ...job, state: "Failed" })).toBe("It has finished.");
    expect(refusal("suspend", { ...job, suspend: true })).toBe("It is suspended already.");
    expect(refusal("delete", { ...job, state: "Failed" })).toBe("");
    expect(refusal("delete", { ...job, kind: "PyTorchJob", readOnly: true })).toContain(
      "PyTorchJob",
    );
  });

  test("needs the right of its kind", () => {
    expect(rightFor("delete", "TrainJob")).toBe("delete-trainjobs");
    expect(rightFor("restart", "MPIJob")).toBe("change-mpijobs");
  });
});
