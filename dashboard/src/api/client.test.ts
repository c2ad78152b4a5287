import { describe, expect, test } from "vitest";
import { address } from "./client";

describe("an address", () => {
  test("has its names filled in, escaped", () => {
    expect(address("/api/v1/namespaces/{namespace}/jobs", { namespace: "a/../b?" })).toBe(
      "/api/v1/namespaces/a%2F..%2Fb%3F/jobs",
    );
  });

  test("has lists joined and empty values left out", () => {
    expect(
      address("/x", {}, { state: ["A", "B"], kind: [], name: "", page: 0, on: undefined }),
    ).toBe("/x?state=A%2CB&page=0");
  });

  test("without a name is a fault, and never a call of another path", () => {
    expect(() => address("/namespaces/{namespace}/jobs", { namespace: "" })).toThrow("namespace");
    expect(() => address("/namespaces/{namespace}/jobs")).toThrow("namespace");
  });
});
