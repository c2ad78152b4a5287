/** Runtimes and queues (RT-1), on a real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accessible, LOOKS, launch, open, ownOriginOnly, picture, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const PAGES = [
  { path: "/runtimes", shows: "mpi-openmpi-cpu" },
  { path: "/runtimes/default/mpi-openmpi-cpu", shows: "nothing wrong was found" },
  { path: "/queues", shows: "This project has no queues" },
];

describe.each(PAGES)("$path", ({ path, shows }) => {
  test.each(LOOKS)("is accessible in %s, and asks nobody but its server", async (look) => {
    const { page, asked, errors, close } = await open(browser, path, { look, width: 1024 });
    await page.getByText(shows).first().waitFor();
    await settled(page);
    await accessible(page);
    await picture(page, `${path.slice(1).replaceAll("/", "-")}-${look}`);
    ownOriginOnly(asked);
    expect(errors).toEqual([]);
    await close();
  });
});
