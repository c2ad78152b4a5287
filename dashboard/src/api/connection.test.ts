import { describe, expect, test, vi } from "vitest";
import { ConnectionStore, STALE_AFTER_MS } from "./connection";

function store() {
  let now = 1_000_000;
  const made = new ConnectionStore(() => now);
  return { made, pass: (ms: number) => (now += ms) };
}

describe("the connection", () => {
  test("is live while nothing fails", () => {
    expect(store().made.current()).toEqual({ phase: "live", silent: "server", since: null });
  });

  test("is stale when a source has failed for a while, as of when it began to", () => {
    const { made, pass } = store();
    made.report("a", "reconnecting");
    expect(made.current().phase).toBe("reconnecting");
    pass(STALE_AFTER_MS - 1);
    made.report("a", "reconnecting");
    expect(made.current().phase).toBe("reconnecting");
    pass(1);
    made.settle();
    expect(made.current()).toEqual({ phase: "stale", silent: "server", since: 1_000_000 });
  });

  test("is not live before all sources are", () => {
    const { made } = store();
    made.report("a", "reconnecting");
    made.report("b", "reconnecting");
    made.report("a", "live");
    expect(made.current().phase).toBe("reconnecting");
    made.report("b", "ended");
    expect(made.current().phase).toBe("live");
  });

  test("tells its listeners only of changes", () => {
    const { made } = store();
    const told = vi.fn();
    made.subscribe(told);
    made.report("a", "live");
    made.report("a", "reconnecting");
    made.settle();
    expect(told).toHaveBeenCalledTimes(1);
  });

  test("stays logged out whatever else is live", () => {
    const { made } = store();
    made.loggedOut();
    made.report("a", "live");
    expect(made.current().phase).toBe("loggedOut");
  });

  test("is logged in again when the server answers, with a login of another window", () => {
    const { made } = store();
    made.loggedOut();
    made.loggedIn();
    expect(made.current().phase).toBe("live");
  });
});
