/**
 * How fast pages are, in Chromium with software rendering, over the real server; by hand, on a
 * machine that does little else. A list is interactive when its rows and the filters with their
 * counts are there and the main thread is free; a frame is the time between two of them.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { launch, open } from "../browser";
import { type Cluster, openAs, startCluster } from "../cluster";
import { figures, quantiles } from "../figures";
import { Api } from "../server";

const ROUNDS = Number(process.env.ROUNDS ?? 20);
const SIZES = (process.env.SIZES ?? "100,5000").split(",").map(Number);
const LIMITS: Record<number, number> = { 100: 500, 5000: 1500 };
const LINES = Number(process.env.LINES ?? 1_000_000);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Milliseconds from the navigation until its rows can be used; the first visit fills the caches. */
async function interactive(page: Page, url: string): Promise<number> {
  await page.goto("about:blank");
  await page.goto(url, { waitUntil: "commit" });
  await page.locator("tbody a.odh-cell-name").first().waitFor();
  return page.evaluate(
    () =>
      new Promise<number>((done) =>
        requestAnimationFrame(() => setTimeout(() => done(performance.now()))),
      ),
  );
}

test.each(SIZES)(
  "a list of %i jobs is interactive in time",
  async (jobs) => {
    const cluster: Cluster = await startCluster();
    try {
      const there = await cluster.ask("fill", { jobs });
      expect(there).toBe(jobs);
      const { page, close } = await openAs(browser, cluster, cluster.tokens.admin, "/");
      const url = new URL("/jobs?namespace=many", cluster.address).href;
      const cold = await interactive(page, url);
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        await page.waitForTimeout(500);
        times.push(await interactive(page, url));
      }
      await page
        .getByText(new RegExp(`of ${jobs}`))
        .first()
        .waitFor();
      const found = quantiles(times);
      figures(`list of ${jobs} jobs`, { ...found, first: Math.round(cold) });
      expect(found.p95).toBeLessThan(LIMITS[jobs] ?? Number.POSITIVE_INFINITY);
      await close();
    } finally {
      await cluster.end();
    }
  },
  900_000,
);

test("a log of a million lines scrolls smoothly", async () => {
  const api = new Api(inject("address"));
  const command =
    `while ! test -e go; do sleep 1; touch go; done; ` +
    `seq -f "step %.0f/${LINES} loss=0.123 throughput=310 samples/s" ${LINES}; sleep 900`;
  await api.create({ name: "million", command });
  const { page, close } = await open(browser, "/jobs/default/mpijobs/million/logs");
  const shown = page.getByText(new RegExp(`of ${LINES.toLocaleString("en-US")}`));
  await shown.waitFor({ timeout: 1_200_000 });
  const log = page.locator(".odh-log");
  await log.hover();
  await page.evaluate(() => {
    const seen = window as unknown as { frames: number[]; last: number };
    seen.frames = [];
    const tick = (now: number) => {
      if (seen.last) seen.frames.push(now - seen.last);
      seen.last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const frames = () =>
    page.evaluate(() => {
      const seen = window as unknown as { frames: number[] };
      const found = seen.frames;
      seen.frames = [];
      return found;
    });
  await page.waitForTimeout(1_000);
  const idle = quantiles(await frames());
  for (let turn = 0; turn < 300; turn += 1) {
    await page.mouse.wheel(0, turn < 150 ? -900 : 700);
    await page.waitForTimeout(16);
  }
  const wheel = quantiles(await frames());
  const jumps: number[] = [];
  for (let turn = 0; turn < 20; turn += 1) {
    await log.evaluate(
      (box, share) => {
        box.scrollTop = share * box.scrollHeight;
      },
      ((turn * 7) % 20) / 20,
    );
    await page.waitForTimeout(150);
    jumps.push(Math.max(...(await frames())));
  }
  const jumped = quantiles(jumps);
  figures(`log of ${LINES} lines`, { idle, wheel, jumps: jumped });
  await close();
  await api.tidy();
  expect(wheel.p95).toBeLessThanOrEqual(50);
  expect(Math.max(wheel.most, jumped.most)).toBeLessThanOrEqual(200);
}, 1_500_000);
