/** Every page before anything has come, when its server fails, and where there is nothing to show. */
import type { Browser, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { accessible, LOOKS, type Look, launch, open, picture, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const JOB = "/jobs/default/mpijobs/hello";
const PAGES = [
  { name: "home", path: "/" },
  { name: "jobs", path: "/jobs" },
  { name: "create", path: "/create" },
  { name: "runtimes", path: "/runtimes" },
  { name: "runtime", path: "/runtimes/default/mpi-openmpi-cpu" },
  { name: "queues", path: "/queues" },
  { name: "compare", path: "/compare?jobs=default/mpijobs/hello,default/mpijobs/fails" },
  ...["overview", "configuration", "workers", "logs", "metrics", "events"].map((tab) => ({
    name: `job-${tab}`,
    path: `${JOB}/${tab}`,
  })),
];

async function opened(look: Look, path: string, answer: (route: Route) => void) {
  const { page, close } = await open(browser, "/queues", { look, width: 1024 });
  await page.route(/\/api\/v1\//, answer);
  await page.goto(new URL(path, inject("address")).href);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  return { page, close };
}

async function sound(page: Page, name: string) {
  await accessible(page);
  await picture(page, name);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(over).toBeLessThanOrEqual(0);
}

describe.each(LOOKS)("in %s", (look) => {
  test.each(PAGES)("$name is accessible while nothing has come", async ({ name, path }) => {
    const { page, close } = await opened(look, path, () => undefined);
    await page.waitForTimeout(1_500);
    await sound(page, `loading-${name}-${look}`);
    await close();
  });

  test.each(PAGES)("$name says that its server failed", async ({ name, path }) => {
    const problem = { type: "about:blank", title: "Internal Server Error", status: 500 };
    const { page, close } = await opened(look, path, (route) =>
      route.fulfill({
        status: 500,
        contentType: "application/problem+json",
        body: JSON.stringify({ ...problem, detail: "the server has failed on purpose" }),
      }),
    );
    await settled(page);
    await page
      .getByText(/failed on purpose|does not answer|Reconnecting/)
      .first()
      .waitFor();
    await sound(page, `error-${name}-${look}`);
    await close();
  });
});

test("a job whose status cannot be read says so, and claims nothing of its progress", async () => {
  const { page, close } = await open(browser, "/queues", { width: 1024 });
  const problem = { type: "about:blank", title: "Internal Server Error", status: 500 };
  await page.route(/\/api\/v1\/.*\/(status|live)$/, (route) =>
    route.fulfill({
      status: 500,
      contentType: "application/problem+json",
      body: JSON.stringify({ ...problem, detail: "the server has failed on purpose" }),
    }),
  );
  await page.goto(new URL(`${JOB}/overview`, inject("address")).href);
  await page.getByText("The status of the job cannot be read").waitFor();
  expect(await page.getByText("says nothing of progress").count()).toBe(0);
  await sound(page, "error-job-status-light");
  await close();
});

const NOTHING = [
  { name: "jobs", path: "/jobs?namespace=nothing-here", shows: "No jobs yet" },
  { name: "job", path: "/jobs/default/mpijobs/nobody", shows: "There is no such job" },
  { name: "address", path: "/nowhere", shows: "There is no such page" },
] as const;

test.each(NOTHING)("nothing at $path is said, with where to go", async ({ name, path, shows }) => {
  for (const look of LOOKS) {
    const { page, close } = await open(browser, path, { look, width: 1024 });
    await page.getByText(shows).first().waitFor();
    await settled(page);
    await sound(page, `empty-${name}-${look}`);
    await close();
  }
});
