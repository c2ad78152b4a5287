import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { accessible, launch, open } from "./browser";
import { Api } from "./server";

let browser: Browser;
const api = new Api(inject("address"));
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
afterEach(() => api.tidy());

test("a filtered and sorted list is in its address and survives a reload", async () => {
  const { page, close } = await open(browser, "/jobs");
  await page.getByRole("link", { name: "fails" }).waitFor();
  await page.getByRole("button", { name: "Status", exact: true }).first().click();
  await page.getByRole("checkbox", { name: /^Failed/ }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "hello" }).waitFor({ state: "detached" });
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await page.waitForURL(/state=Failed.*sort=name/);
  await page.reload();
  await page.getByRole("link", { name: "fails" }).waitFor();
  expect(await page.getByRole("link", { name: "hello" }).count()).toBe(0);
  await page.getByRole("button", { name: "Clear filters" }).first().click();
  await page.getByRole("link", { name: "hello" }).waitFor();
  await close();
});

test("a search that finds nothing says so and leads back", async () => {
  const { page, close } = await open(browser, "/jobs?name=nothing-like-it");
  await page.getByRole("heading", { name: "No job matches" }).waitFor();
  await accessible(page);
  await close();
});

test("a job that somebody else submits appears without a reload, and so does its end", async () => {
  const { page, close } = await open(browser, "/jobs");
  await page.getByRole("link", { name: "hello" }).waitFor();
  await api.create({ name: "from-elsewhere", command: "sleep 2" });
  const row = page.getByRole("row").filter({ hasText: "from-elsewhere" });
  await row.waitFor({ timeout: 10_000 });
  await row.getByText("Succeeded").waitFor({ timeout: 30_000 });
  await close();
});

test("several jobs are resumed, and then deleted after a question", async () => {
  for (const name of ["many-a", "many-b"])
    await api.create({ name, command: "true", suspend: true });
  const { page, close } = await open(browser, "/jobs?name=many-");
  await page.getByRole("checkbox", { name: "Choose many-a" }).check();
  await page.getByRole("checkbox", { name: "Choose many-b" }).check();
  await page.getByRole("button", { name: "With 2 selected" }).click();
  await accessible(page);
  await page.getByRole("menuitem", { name: "Resume" }).click();
  await page.getByText("2 jobs resumed").waitFor();
  await api.reaches("many-a", "Succeeded");
  await api.reaches("many-b", "Succeeded");
  await page.getByRole("button", { name: "With 2 selected" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  const question = page.getByRole("dialog");
  await question.getByText("Delete 2 jobs?").waitFor();
  await accessible(page);
  await question.getByRole("button", { name: "Delete" }).click();
  await page.getByText("2 jobs deleted").waitFor();
  await page.getByRole("heading", { name: "No job matches" }).waitFor();
  await close();
});

test("a job is suspended and resumed from its row, by the keyboard alone", async () => {
  await api.create({ name: "by-keys", command: "sleep 300" });
  await api.reaches("by-keys", "Running");
  const { page, close } = await open(browser, "/jobs?name=by-keys");
  const menu = page.getByRole("button", { name: "Actions for by-keys" });
  await menu.focus();
  await page.keyboard.press("Enter");
  const suspend = page.getByRole("menuitem", { name: "Suspend" });
  await suspend.waitFor();
  while (!(await suspend.evaluate((one) => one === document.activeElement))) {
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  await page.getByText("by-keys suspended").waitFor();
  await api.reaches("by-keys", "Suspended");
  await page.getByRole("row").filter({ hasText: "by-keys" }).getByText("Suspended").waitFor();
  await close();
});

test("columns are chosen and remembered", async () => {
  const { page, close } = await open(browser, "/jobs");
  await page.getByRole("columnheader", { name: "Kind" }).waitFor();
  await page.getByRole("button", { name: "Choose columns" }).click();
  await page.getByRole("checkbox", { name: "Owner" }).click();
  await page.getByRole("checkbox", { name: "Kind" }).click();
  await page.reload();
  await page.getByRole("columnheader", { name: "Owner" }).waitFor();
  expect(await page.getByRole("columnheader", { name: "Kind" }).count()).toBe(0);
  await close();
});

test("nothing overflows the window at 1024 pixels", async () => {
  for (const path of ["/", "/jobs"]) {
    const { page, close } = await open(browser, path, { width: 1024, height: 768 });
    await page.getByText("runs", { exact: true }).first().waitFor();
    const wide = await page.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    );
    expect(wide).toBeLessThanOrEqual(0);
    await close();
  }
});

test("a lost server is said, what was shown stays, and it comes back by itself", async () => {
  const { page, close } = await open(browser, "/jobs");
  await page.getByRole("link", { name: "runs" }).waitFor();
  await page.context().setOffline(true);
  await page
    .getByText(/The server does not answer: this page is as of/)
    .waitFor({ timeout: 45_000 });
  expect(await page.getByRole("link", { name: "runs" }).count()).toBe(1);
  await accessible(page);
  await page.context().setOffline(false);
  await page
    .getByText(/The server does not answer/)
    .waitFor({ state: "detached", timeout: 45_000 });
  await close();
}, 120_000);

test("who is logged out is told how to get in again", async () => {
  const { page, close } = await open(browser, "/");
  await page.getByText("Failed lately").waitFor();
  await page.context().clearCookies();
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByText("You are no longer logged in").waitFor();
  await page.getByText(/open the address that odh dashboard printed last/).waitFor();
  await accessible(page);
  await close();
});
