/**
 * A real job of 64 workers, and one that eight of its ranks end: pages that must stay readable. By
 * hand, since so many sshd and ranks keep a small machine busy for a minute.
 */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { accessible, LOOKS, launch, open, ownOriginOnly, picture, settled } from "../browser";
import { Api } from "../server";

const WORKERS = 64;
const FAILED = 8;
const SMALL = { cpu: "10m", memory: "32Mi" };
const TABS = ["overview", "workers", "logs", "events"] as const;

/** Every eighth rank fails by itself, also when it is told to end because another one failed. */
const EIGHTH_FAILS = `
  rank=\${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}
  [ $((rank % 8)) = 3 ] || exec sleep 600
  trap 'exit 3' TERM
  echo "ValueError: shard $rank has no samples" >&2
  for i in $(seq 300); do sleep 0.1; done
  exit 3`;

let browser: Browser;
const api = new Api(inject("address"));
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await api.tidy();
  await browser?.close();
});

const path = (name: string, tab: string) => `/jobs/default/mpijobs/${name}/${tab}`;
const heading = (page: Page, name: RegExp) => page.getByRole("heading", { name });

async function looked(name: string, tab: string, look: (typeof LOOKS)[number], width = 1280) {
  const { page, asked, errors, close } = await open(browser, path(name, tab), { look, width });
  await page.getByRole("heading", { level: 1, name }).waitFor();
  if (tab === "workers") await heading(page, new RegExp(`^${WORKERS} ranks`)).waitFor();
  await settled(page);
  await accessible(page);
  await picture(page, `${name}-${tab}-${width === 1280 ? look : width}`);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(over, `${tab} at ${width}`).toBeLessThanOrEqual(0);
  ownOriginOnly(asked);
  expect(errors).toEqual([]);
  await close();
}

async function everywhere(name: string) {
  for (const look of LOOKS) for (const tab of TABS) await looked(name, tab, look);
  for (const tab of TABS) await looked(name, tab, "light", 1024);
}

test("a job of 64 workers: its map, its table and its lines are readable in every look", async () => {
  const command = "echo step 1/9 loss=0.5; exec sleep 900";
  await api.create({ name: "wide", command, workers: WORKERS, resources: SMALL });
  await api.reaches("wide", "Running");
  const { page, close } = await open(browser, path("wide", "workers"));
  await heading(page, new RegExp(`^${WORKERS} ranks$`)).waitFor();
  const places = page.locator(".odh-pod .odh-rank");
  await expect.poll(() => places.count()).toBe(WORKERS);
  expect(new Set(await places.allTextContents()).size).toBe(WORKERS);
  await page.getByRole("button", { name: "Table" }).click();
  const table = page.getByRole("grid", { name: "Ranks" });
  await expect.poll(() => table.getByRole("row").count()).toBe(WORKERS + 1);
  await accessible(page);
  await close();
  await everywhere("wide");
  await api.tidy();
}, 600_000);

test("eight ranks of 64 fail: all are marked, the cause is one, and its rank is among them", async () => {
  await api.create({ name: "eight", command: EIGHTH_FAILS, workers: WORKERS, resources: SMALL });
  await api.reaches("eight", "Failed");
  const { page, close } = await open(browser, path("eight", "workers"));
  await heading(page, new RegExp(`^${WORKERS} ranks, ${FAILED} failed, `)).waitFor();
  const failed = page.locator(".odh-pod .odh-rank--failed");
  await expect.poll(() => failed.count()).toBe(FAILED);
  await page.getByRole("tab", { name: "overview" }).click();
  await heading(page, /Why it failed/).waitFor();
  await page
    .getByText(/ValueError: shard (3|11|19|27|35|43|51|59) has no samples/)
    .first()
    .waitFor();
  await close();
  await everywhere("eight");
}, 600_000);
