/** Two people and an administrator of one cluster, with tokens of the cluster's own (SC-009, SC-011). */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessible, launch, ownOriginOnly } from "./browser";
import { type Cluster, call, openAs, type Person, startCluster } from "./cluster";
import { figures } from "./figures";

const AGAIN = { timeout: 180_000 };

let browser: Browser;
let cluster: Cluster;
beforeAll(async () => {
  [browser, cluster] = await Promise.all([launch(), startCluster()]);
  for (const project of ["alpha", "beta"]) {
    await cluster.ask("submit", { project, name: `${project}-job` });
  }
  await cluster.ask("say", { lines: ["step 1/9 loss=0.5", "a word of alpha and beta"] });
  await cluster.ask("until", { project: "alpha", name: "alpha-job", state: "Running" });
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await cluster?.end();
}, 120_000);

const as = (who: Person, path: string) => openAs(browser, cluster, cluster.tokens[who], path);
const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true });

describe.each([
  { who: "alpha", other: "beta" },
  { who: "beta", other: "alpha" },
] as const)("SC-009: the person of $who", ({ who, other }) => {
  test("sees their own jobs, and nothing of another project in any list", async () => {
    const { page, close, asked } = await as(who, `/jobs?namespace=${who}`);
    await link(page, `${who}-job`).waitFor();
    expect(await page.getByText(`${other}-job`).count()).toBe(0);
    await page.goto(new URL("/", cluster.address).href);
    await link(page, `${who}-job`).waitFor();
    expect(await page.content()).not.toContain(`${other}-job`);
    ownOriginOnly(asked, cluster.address);
    await close();
  });

  test("is refused another project's jobs, job, logs and form in words, and learns nothing", async () => {
    const { page, close } = await as(who, `/jobs?namespace=${other}`);
    await page
      .getByText(/forbidden: you .* may not/i)
      .first()
      .waitFor();
    expect(await page.getByText(/does not answer|Reconnecting/).count()).toBe(0);
    await accessible(page);
    for (const rest of ["", "/logs", "/workers", "/events", "/configuration", "/metrics"]) {
      const job = `/jobs/${other}/mpijobs/${other}-job${rest}`;
      await page.goto(new URL(job, cluster.address).href);
      await page
        .getByText(/forbidden: you .* may not/i)
        .first()
        .waitFor();
      expect(await page.content()).not.toContain("a word of");
    }
    await page.goto(new URL(`/create?namespace=${other}`, cluster.address).href);
    await page.getByRole("textbox", { name: "The job as YAML" }).waitFor();
    await page.getByRole("button", { name: "Review and create", exact: true }).last().click();
    await page
      .getByText(/forbidden|may not create/i)
      .first()
      .waitFor();
    const made = page.getByRole("button", { name: "Create job", exact: true });
    if (await made.isEnabled()) {
      await made.click();
      await page
        .getByText(/forbidden: you .* may not/i)
        .first()
        .waitFor();
    }
    const { text } = await call(
      cluster,
      cluster.tokens.admin,
      "GET",
      `/api/v1/namespaces/${other}/jobs`,
    );
    expect(JSON.parse(text).total).toBe(1);
    await close();
  });
});

test("an administrator sees the jobs of all projects, and what each project uses", async () => {
  const { page, close } = await as("admin", "/jobs");
  await link(page, "alpha-job").waitFor();
  await link(page, "beta-job").waitFor();
  await page.goto(new URL("/", cluster.address).href);
  const uses = page.getByRole("grid", { name: "Use by project" });
  await uses.getByRole("link", { name: "alpha" }).waitFor();
  await uses.getByRole("link", { name: "beta" }).waitFor();
  await accessible(page);
  await close();
});

test("AC-9: a cluster's log is read and followed by whoever may, and links to Grafana", async () => {
  const { page, close } = await as("alpha", "/jobs/alpha/mpijobs/alpha-job/logs");
  await page.getByText("a word of alpha and beta").first().waitFor();
  await cluster.ask("say", { lines: ["a line that came later"] });
  await page.getByText("a line that came later").first().waitFor();
  await page.getByRole("tab", { name: "metrics" }).click();
  const grafana = page.getByRole("link", { name: /Open in Grafana/ });
  await grafana.waitFor();
  expect(await grafana.getAttribute("href")).toBe(
    "https://grafana.example.com/d/mpijob-overview?var-namespace=alpha&var-mpijob=alpha-job",
  );
  await close();
});

const VIEWS = [
  { path: "/jobs?namespace=alpha", shows: "alpha-job" },
  { path: "/jobs/alpha/mpijobs/alpha-job", shows: "alpha-job" },
];

test("a login that ends in mid-view is said, what was shown stays, and a new one goes on", async () => {
  const token = (await cluster.ask("token", { project: "alpha", seconds: 60 })) as string;
  const { page, close } = await openAs(browser, cluster, token, "/jobs?namespace=alpha");
  await link(page, "alpha-job").waitFor();
  const out = page.getByText("You are no longer logged in");
  await out.waitFor(AGAIN);
  await page.getByText("On a cluster, reload this page to log in.", { exact: false }).waitFor();
  expect(await link(page, "alpha-job").isVisible()).toBe(true);
  await accessible(page);
  await page.context().setExtraHTTPHeaders({ "X-Forwarded-Access-Token": cluster.tokens.alpha });
  await out.waitFor({ state: "detached", ...AGAIN });
  await cluster.ask("submit", { project: "alpha", name: "after-login", suspend: true });
  await link(page, "after-login").waitFor(AGAIN);
  await close();
}, 600_000);

test.each(["kill", "stop"])(
  "an API server that is gone for a minute (%s): pages say that they are old, and recover",
  async (how) => {
    const opened = await Promise.all(VIEWS.map(({ path }) => as("alpha", path)));
    for (const [n, { page }] of opened.entries()) {
      await page
        .getByText(VIEWS[n]?.shows ?? "", { exact: true })
        .first()
        .waitFor();
    }
    const [said, recovered]: [number[], number[]] = [[], []];
    const gone = Date.now();
    await cluster.ask("api", { how });
    for (const { page } of opened) {
      await page
        .getByText(/The cluster does not answer/)
        .first()
        .waitFor(AGAIN);
      said.push((Date.now() - gone) / 1000);
      await page.getByText("alpha-job", { exact: true }).first().waitFor();
    }
    await accessible(opened[0]?.page as Page);
    await new Promise((done) => setTimeout(done, Math.max(0, gone + 60_000 - Date.now())));
    await cluster.ask("api", { how: how === "kill" ? "start" : "continue" });
    const back = Date.now();
    for (const { page } of opened) {
      await page
        .getByText(/The cluster does not answer/)
        .first()
        .waitFor({ state: "detached", ...AGAIN });
      recovered.push((Date.now() - back) / 1000);
    }
    figures(`API server gone (${how})`, {
      saidAfterSeconds: said,
      recoveredAfterSeconds: recovered,
    });
    const name = `after-${how}`;
    await cluster.ask("submit", { project: "alpha", name, suspend: true });
    await link(opened[0]?.page as Page, name).waitFor(AGAIN);
    for (const { close } of opened) await close();
  },
  900_000,
);

test("a server that is killed and started again: pages say so, and go on by themselves", async () => {
  const opened = await Promise.all(VIEWS.map(({ path }) => as("alpha", path)));
  for (const [n, { page }] of opened.entries()) {
    await page
      .getByText(VIEWS[n]?.shows ?? "", { exact: true })
      .first()
      .waitFor();
  }
  await cluster.ask("server", { how: "kill" });
  for (const { page } of opened) {
    await page
      .getByText(/Reconnecting to the server|The server does not answer/)
      .first()
      .waitFor(AGAIN);
    await page.getByText("alpha-job", { exact: true }).first().waitFor();
  }
  await cluster.ask("server", { how: "start" });
  for (const { page } of opened) {
    const silent = page.getByText(/Reconnecting to the server|The server does not answer/);
    await expect.poll(() => silent.count(), AGAIN).toBe(0);
  }
  await cluster.ask("submit", { project: "alpha", name: "after-server", suspend: true });
  await link(opened[0]?.page as Page, "after-server").waitFor(AGAIN);
  for (const { close } of opened) await close();
}, 600_000);
