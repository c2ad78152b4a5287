import { describe, expect, test } from "vitest";
import { apiQuery, changed, isFiltered, listState } from "./listState";

const read = (text: string) => listState(new URLSearchParams(text));

describe("what a list shows", () => {
  test("is newest first where the address says nothing", () => {
    expect(read("")).toMatchObject({ sortBy: "created", order: "desc", size: 50, page: 1 });
    expect(isFiltered(read(""))).toBe(false);
  });

  test("is read from its address, and nonsense is the default", () => {
    const state = read("state=Failed,Running&queue=a&sort=name&size=100&name=x");
    expect(state.facets.state).toEqual(["Failed", "Running"]);
    expect(state).toMatchObject({ sortBy: "name", order: "asc", size: 100, name: "x" });
    expect(read("sort=evil&order=up&size=9999&page=-3")).toEqual(read(""));
  });

  test("is the same after a change was written and read again", () => {
    const search = changed(new URLSearchParams("namespace=a"), {
      facets: { ...read("").facets, kind: ["TrainJob"] },
      sortBy: "gpus",
      order: "desc",
    });
    expect(search.get("namespace")).toBe("a");
    expect(listState(search)).toMatchObject({ sortBy: "gpus", order: "desc" });
    expect(listState(search).facets.kind).toEqual(["TrainJob"]);
  });

  test("keeps a value that has commas itself", () => {
    const owner = ["CN=Jane,OU=ml", "50%2C off", "bob"];
    const search = changed(new URLSearchParams(), { facets: { ...read("").facets, owner } });
    const again = read(search.toString());
    expect(again.facets.owner).toEqual(owner);
    expect(apiQuery(again).owner).toEqual(owner);
  });

  test("begins at page one when a filter or the order changes", () => {
    const third = new URLSearchParams("after=t2&page=3");
    expect(listState(third)).toMatchObject({ after: "t2", page: 3 });
    expect(listState(changed(third, { name: "x" }))).toMatchObject({ after: "", page: 1 });
    expect(listState(changed(third, { after: "t3", page: 4 }))).toMatchObject({
      after: "t3",
      page: 4,
    });
  });

  test("is asked of the server in its own words", () => {
    expect(apiQuery(read("state=Failed&after=t&size=20"))).toMatchObject({
      state: ["Failed"],
      limit: 20,
      continue: "t",
      sortBy: "created",
      order: "desc",
    });
  });
});
