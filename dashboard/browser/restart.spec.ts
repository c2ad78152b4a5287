/** `odh dashboard` is killed and started again while somebody looks at its pages. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { accessible, launch, open } from "./browser";
import { Api, type Served, serve, stateFolder } from "./server";

const AGAIN = { timeout: 60_000 };

let browser: Browser;
let server: Served;
let folder: ReturnType<typeof stateFolder>;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());
beforeEach(async () => {
  folder = stateFolder();
  server = await serve(folder.state);
  await new Api(server.address).create({ name: "kept", command: "true", suspend: true });
});
afterEach(async () => {
  await new Api(server.address).clear();
  await server.end("SIGTERM");
  folder.remove();
});

const PAGES = [
  { path: "/jobs", shows: "kept", deleted: "No jobs yet" },
  { path: "/jobs/default/mpijobs/kept", shows: "kept", deleted: "This job has been deleted" },
];

test.each(PAGES)(
  "$path: another server's login is asked for, and then it goes on",
  async ({ path, shows, deleted }) => {
    const { page, close } = await open(browser, path, { address: server.address });
    const known = page.getByText(shows, { exact: true }).first();
    await known.waitFor();

    await server.end("SIGKILL");
    await page.getByText(/Reconnecting to the server|The server does not answer/).waitFor(AGAIN);
    await known.waitFor();

    server = await serve(folder.state, new URL(server.address).port);
    const out = page.getByText("You are no longer logged in");
    await out.waitFor(AGAIN);
    await page
      .getByText("open the address that odh dashboard printed last", { exact: false })
      .waitFor();
    expect(await known.isVisible()).toBe(true);
    expect(await page.getByText(/The server does not answer/).count()).toBe(0);
    await accessible(page);

    const other = await page.context().newPage();
    await other.goto(server.address);
    await out.waitFor({ state: "detached", ...AGAIN });
    await new Api(server.address).clear();
    await page.getByText(deleted).first().waitFor(AGAIN);
    await close();
  },
  180_000,
);
