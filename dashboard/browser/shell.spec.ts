import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessible, LOOKS, launch, open, ownOriginOnly, picture, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const PAGES = [
  { path: "/", heading: "Home", shows: "Failed lately" },
  { path: "/jobs", heading: "Jobs", shows: "runs" },
];

describe.each(PAGES)("$heading", ({ path, heading, shows }) => {
  test.each(LOOKS)("is accessible in %s, and asks nobody but its server", async (look) => {
    const { page, asked, errors, close } = await open(browser, path, { look });
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    await page.getByText(shows, { exact: true }).first().waitFor();
    await settled(page);
    await accessible(page);
    await picture(page, `${heading.toLowerCase()}-${look}`);
    ownOriginOnly(asked);
    expect(errors).toEqual([]);
    await close();
  });
});

test("menus of the masthead are accessible, and high contrast is a click that is remembered", async () => {
  const { page, close } = await open(browser, "/");
  await page.getByRole("button", { name: "Project: All projects" }).click();
  await page.getByRole("option", { name: "default" }).waitFor();
  await accessible(page);
  await page.getByRole("option", { name: "default" }).click();
  await page.waitForURL(/namespace=default/);
  await page.getByRole("button", { name: "Colors and contrast" }).click();
  await accessible(page);
  await page.getByText("High contrast").click();
  const contrast = () =>
    page.evaluate(() => document.documentElement.classList.contains("pf-v6-theme-high-contrast"));
  expect(await contrast()).toBe(true);
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("button", { name: "Project: default" }).waitFor();
  await close();
});

test("the first page is at most 600 KB of compressed files", async () => {
  const { page, close } = await open(browser, "/jobs");
  await page.getByRole("link", { name: "runs" }).waitFor();
  const sizes = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .map((one) => (one as PerformanceResourceTiming).encodedBodySize),
  );
  expect(sizes.reduce((sum, one) => sum + one, 0)).toBeLessThan(600_000);
  await close();
});
