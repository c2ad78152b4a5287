import { expect, test } from "vitest";
import { grafanaOf } from "./grafana";

const job = { namespace: "team", name: "train" };

test("a job's page of Grafana has its project and its name", () => {
  expect(grafanaOf("https://grafana/d/mpijob-overview", job)).toBe(
    "https://grafana/d/mpijob-overview?var-namespace=team&var-mpijob=train",
  );
});

test("no link leads to what is no page", () => {
  expect(grafanaOf("", job)).toBe("");
  expect(grafanaOf("javascript:alert(1)", job)).toBe("");
});
