/** A job's page against a real server and real jobs: one rank each, since that is what fits here. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { accessible, LOOKS, launch, open, ownOriginOnly, picture, settled } from "./browser";
import { Api, LONG_NAME } from "./server";

let browser: Browser;
const api = new Api(inject("address"));
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
afterEach(() => api.tidy());

const path = (name: string, tab = "") => `/jobs/default/mpijobs/${name}${tab && `/${tab}`}`;
const TABS = ["overview", "configuration", "workers", "logs", "metrics", "events"] as const;

/** Deletes a job as somebody else would: not by the page that is looked at. */
async function removed(name: string): Promise<void> {
  const { origin, searchParams } = new URL(inject("address"));
  const answer = await fetch(`${origin}/api/v1/namespaces/default/mpijobs/${name}`, {
    method: "DELETE",
    headers: { Authorization: `Bearer ${searchParams.get("token")}` },
  });
  expect(answer.ok).toBe(true);
}

/** What is on a tab only when all of it is there. */
async function shown(page: Page, tab: (typeof TABS)[number]): Promise<void> {
  const ready = {
    overview: page.getByRole("grid", { name: "Conditions" }),
    configuration: page.getByText("apiVersion"),
    workers: page.getByRole("group", { name: "Show as" }),
    logs: page.getByRole("table", { name: "Log lines" }),
    metrics: page.getByText(/Nothing is known yet|What is not known|As a chart/).first(),
    events: page.getByRole("grid", { name: "Events" }),
  }[tab];
  await ready.waitFor({ timeout: 20_000 });
}

test.each(LOOKS.flatMap((look) => ["fails", "runs"].map((name) => ({ name, look }))))(
  "every tab of $name is accessible in $look, and asks nobody but its server",
  async ({ name, look }) => {
    const { page, asked, errors, close } = await open(browser, path(name), { look });
    await page.getByRole("heading", { level: 1, name }).waitFor();
    for (const tab of TABS) {
      await page.getByRole("tab", { name: tab }).click();
      await shown(page, tab);
      await settled(page);
      await accessible(page);
      await picture(page, `job-${name}-${tab}-${look}`);
    }
    ownOriginOnly(asked);
    expect(errors).toEqual([]);
    await close();
  },
);

test("AC-8, AC-10: a job is watched live to its end: state, progress, duration, sentence", async () => {
  await api.create({
    name: "watched",
    command: "for i in 1 2 3 4; do echo step $i/4 loss=0.$i; sleep 1; done",
  });
  const { page, close } = await open(browser, path("watched"));
  await page.getByText("Running", { exact: true }).first().waitFor({ timeout: 30_000 });
  await page.getByRole("progressbar").waitFor();
  await page.getByText(/^Success alert:It succeeded after \d+s\.$/).waitFor({ timeout: 30_000 });
  await page.getByText("step 4 of 4").waitFor();
  await close();
});

test("AC-9: a failure is explained with its line, and the line is one click away in the log", async () => {
  // SC-006 too.
  const command =
    "echo step 1/9; echo 'RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; exit 1";
  await api.create({ name: "explained", command });
  await api.reaches("explained", "Failed");
  const { page, close } = await open(browser, path("explained"));
  const cause = page.getByRole("heading", { name: /Why it failed: A GPU has no memory left/ });
  await cause.waitFor({ timeout: 30_000 });
  await page
    .getByText(/Lower the batch size/)
    .first()
    .waitFor();
  await page.getByText("explained-worker-0").first().waitFor();
  await page.getByRole("link", { name: "Show this line in the log" }).click();
  await page.waitForURL(/\/logs\?find=/);
  const found = page.locator(".odh-log__row--found");
  await found.waitFor();
  expect(await found.textContent()).toContain("CUDA out of memory");
  await close();
});

test("AC-9: lines are filtered by rank, text and level; what is chosen is in the address", async () => {
  await api.create({ name: "lines", command: "for i in $(seq 1 9); do echo step $i/9; done" });
  await api.reaches("lines", "Succeeded");
  const { page, close } = await open(browser, path("lines", "logs"));
  const rows = page.locator(".odh-log__row");
  await rows.first().waitFor();
  await page.getByLabel("Ranks", { exact: true }).fill("7");
  await page.getByRole("heading", { name: "No line is left by these filters" }).waitFor();
  await page.getByLabel("Ranks", { exact: true }).fill("0");
  await page.waitForURL(/ranks=0/);
  await rows.first().waitFor();
  await page.getByLabel("Text", { exact: true }).fill("step 1/9");
  await page.waitForURL(/text=step/);
  await expect.poll(() => rows.count()).toBe(1);
  await page.reload();
  await expect.poll(() => rows.count(), { timeout: 10_000 }).toBe(1);
  await page.getByLabel("Text", { exact: true }).fill("^step [23]/9");
  // A click, since `check` wants to see it at once, and the address is what tells it.
  await page.getByLabel("Regular expression").click();
  await expect.poll(() => page.getByLabel("Regular expression").isChecked()).toBe(true);
  await expect.poll(() => rows.count()).toBe(2);
  await close();
});

test("a job is suspended and resumed", async () => {
  await api.create({ name: "paused", command: "sleep 300" });
  await api.reaches("paused", "Running");
  const { page, close } = await open(browser, path("paused"));
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("dialog").getByText("Suspend this job?").waitFor();
  await accessible(page);
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
  await page.getByText("Suspended", { exact: true }).first().waitFor({ timeout: 30_000 });
  await page.getByRole("button", { name: "Resume" }).click();
  await api.reaches("paused", "Running");
  await page.getByText("Running", { exact: true }).first().waitFor({ timeout: 30_000 });
  await close();
});

test("a clone begins in the form for new jobs", async () => {
  const { page, close } = await open(browser, path("hello"));
  await page.getByRole("button", { name: "Clone" }).click();
  await page.waitForURL(/\/create\?from=default%2Fmpijobs%2Fhello/);
  await close();
});

test("a deletion wants the job's name typed", async () => {
  await api.create({ name: "goes", command: "true", suspend: true });
  const { page, close } = await open(browser, path("goes"));
  await page.getByRole("button", { name: "Delete" }).click();
  const question = page.getByRole("dialog");
  const confirm = question.getByRole("button", { name: "Delete" });
  await accessible(page);
  expect(await confirm.isDisabled()).toBe(true);
  await question.getByLabel("Type goes to confirm").fill("goes");
  await confirm.click();
  await page.waitForURL(/\/jobs\?namespace=default$/);
  await close();
});

test("a job that somebody else deletes is said to be deleted, and what was known stays", async () => {
  await api.create({ name: "vanishes", command: "true", suspend: true });
  const { page, close } = await open(browser, path("vanishes"));
  await page.getByRole("heading", { level: 1, name: "vanishes" }).waitFor();
  await removed("vanishes");
  await page.getByText("This job has been deleted").waitFor({ timeout: 20_000 });
  expect(await page.getByRole("heading", { level: 1, name: "vanishes" }).count()).toBe(1);
  await accessible(page);
  await page.reload();
  await page.getByRole("heading", { name: "There is no such job" }).waitFor();
  await accessible(page);
  await close();
});

test("jobs are compared: what differs comes first; the page is accessible in every look", async () => {
  const jobs = "default/mpijobs/hello,default/mpijobs/fails";
  for (const look of LOOKS) {
    const { page, close } = await open(browser, `/compare?jobs=${jobs}`, { look });
    const table = page.getByRole("grid", { name: "Configuration" });
    await table.getByText("echo hello").waitFor();
    expect(await table.getByRole("row").count()).toBe(2);
    await settled(page);
    await accessible(page);
    await picture(page, `compare-${look}`);
    await close();
  }
});

test("nothing overflows the window at 1024 pixels, with a long name", async () => {
  const { page, close } = await open(browser, path(LONG_NAME), { width: 1024, height: 768 });
  await page.getByRole("heading", { level: 1, name: LONG_NAME }).waitFor();
  for (const tab of TABS) {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tab", { name: tab, selected: true }).waitFor();
    await settled(page);
    const wide = await page.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    );
    expect(wide).toBeLessThanOrEqual(0);
  }
  await close();
});
