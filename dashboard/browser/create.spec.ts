/** Jobs made by the wizard, on a real server that really runs them (AC-1, AC-5, SC-001, SC-011). */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { accessible, LOOKS, launch, open, ownOriginOnly, picture } from "./browser";
import { Api } from "./server";
import { begin, change, faults, named, retyped, step, submit, taken, yaml } from "./wizard";

const STEPS = [
  "Start from",
  "Name and project",
  "Image and command",
  "Workers and resources",
  "Advanced",
  "Review and create",
];

let browser: Browser;
let api: Api;
beforeAll(async () => {
  browser = await launch();
  api = new Api(inject("address"));
  // Jobs of this machine wait for free cores, and this one holds them.
  await change("runs", "suspend");
});
afterAll(async () => {
  await browser.close();
  await api.tidy();
  await change("runs", "resume");
  await api.reaches("runs", "Running");
});

test("a command that starts no ranks runs under mpirun, once for each slot (CTL-15)", async () => {
  const { page, close } = await open(browser, "/create");
  await begin(page);
  await named(page, "wrapped");
  await step(page, "Image and command");
  await page.getByRole("textbox", { name: "Command" }).fill("sh -c 'echo $OMPI_COMM_WORLD_RANK'");
  await step(page, "Workers and resources");
  await page.getByRole("spinbutton", { name: "Workers" }).fill("1");
  await page.getByRole("spinbutton", { name: "Slots per worker" }).fill("2");
  await page.getByText("2 ranks in all").waitFor();
  await step(page, "Review and create");
  await page.getByText("mpirun -n 2 sh -c 'echo $OMPI_COMM_WORLD_RANK'", { exact: true }).waitFor();
  await taken(page);
  await submit(page);
  await page.waitForURL("**/wrapped");
  await api.reaches("wrapped", "Succeeded");
  await close();
});

test("a name that is taken is told at the name, and nothing of the form is lost", async () => {
  const { page, close } = await open(browser, "/create");
  await begin(page);
  await named(page, "hello");
  await step(page, "Workers and resources");
  await page.getByRole("spinbutton", { name: "Workers" }).fill("3");
  await step(page, "Review and create");
  await taken(page);
  await submit(page);
  await page.getByText("already exists").first().waitFor();
  const name = page.getByRole("textbox", { name: "Name" });
  await expect.poll(() => name.evaluate((one) => one === document.activeElement)).toBe(true);
  expect(await yaml(page).textContent()).toContain("replicas: 3");
  await close();
});

test("what is typed as YAML is in the form, and what the form has no field for is kept", async () => {
  const { page, close } = await open(browser, "/create");
  await begin(page);
  await retyped(page, (text) =>
    text
      .replace("replicas: 2", "replicas: 5 # five")
      .replace("spec:\n", "spec:\n  sshAuthMountPath: /home/x/.ssh\n"),
  );
  await step(page, "Workers and resources");
  const workers = page.getByRole("spinbutton", { name: "Workers" });
  await expect.poll(() => workers.inputValue()).toBe("5");
  await workers.fill("6");
  await expect.poll(() => yaml(page).textContent()).toContain("replicas: 6 # five");
  expect(await yaml(page).textContent()).toContain("sshAuthMountPath: /home/x/.ssh");
  await retyped(page, () => "a: [");
  await page.getByText("the form stands still").waitFor();
  expect(await workers.isDisabled()).toBe(true);
  await close();
});

test("a draft survives a reload, and what looks like a secret does not", async () => {
  const { page, close } = await open(browser, "/create");
  await begin(page);
  await named(page, "draft");
  await step(page, "Advanced");
  await page.getByRole("button", { name: "Add a variable" }).click();
  const variable = page.getByRole("group", { name: "Variable 1" });
  await variable.getByRole("textbox", { name: "Variable" }).fill("API_TOKEN");
  await variable.getByRole("textbox", { name: "Value" }).fill("hunter2hunter2");
  await page.getByText("Put it into a Secret").waitFor();
  await page.waitForTimeout(600);
  const kept = await page.evaluate(() => JSON.stringify(sessionStorage));
  expect(kept).toContain("draft");
  expect(kept).not.toContain("hunter2");
  await page.reload();
  await page.getByText("Values that may be secret were not kept").waitFor();
  await named(page, "draft");
  expect(await yaml(page).textContent()).toContain("API_TOKEN");
  await page.getByRole("button", { name: "Begin anew" }).click();
  await expect.poll(() => yaml(page).textContent()).toContain("name: hello");
  await close();
});

test("two clicks make one job", async () => {
  const { page, close } = await open(browser, "/create");
  await begin(page);
  await named(page, "once");
  await step(page, "Review and create");
  await taken(page);
  let calls = 0;
  page.on("request", (asked) => {
    if (asked.method() === "POST" && asked.url().endsWith("/mpijobs")) calls += 1;
  });
  await page.getByRole("button", { name: "Create job", exact: true }).dblclick();
  await page.waitForURL("**/once");
  expect(calls).toBe(1);
  await close();
});

test("a copy begins with the job that was copied, under another name", async () => {
  const { page, close } = await open(browser, "/create?from=default%2Fmpijobs%2Ffails");
  await page.getByText("A copy of fails").waitFor();
  await expect.poll(() => yaml(page).textContent()).toContain("name: fails-copy");
  expect(await yaml(page).textContent()).not.toContain("resourceVersion");
  await step(page, "Review and create");
  await taken(page);
  await close();
});

test("files travel with the job", async () => {
  const { page, close } = await open(browser, "/create");
  await begin(page);
  await named(page, "with-code");
  await step(page, "Image and command");
  await page.getByRole("textbox", { name: "Command" }).fill("sh hello.sh");
  await page
    .locator('input[type="file"][multiple]')
    .setInputFiles({ name: "hello.sh", mimeType: "text/plain", buffer: Buffer.from("echo $0") });
  await page.getByText("1 file, 7 B in all").waitFor();
  await step(page, "Review and create");
  await taken(page);
  await submit(page);
  await page.waitForURL("**/with-code");
  await api.reaches("with-code", "Succeeded");
  await close();
});

describe("every step is accessible", () => {
  test.each(LOOKS)("in %s, and asks nobody but its server", async (look) => {
    const { page, asked, errors, close } = await open(browser, "/create", { look, width: 1440 });
    await begin(page);
    for (const [n, name] of STEPS.entries()) {
      await step(page, name);
      await page.waitForTimeout(200);
      if (name === "Review and create") await taken(page);
      await accessible(page);
      await picture(page, `create-${n + 1}-${look}`);
    }
    ownOriginOnly(asked);
    expect(faults(errors)).toEqual([]);
    await close();
  });

  test("and fits 1024 pixels", async () => {
    const { page, close } = await open(browser, "/create", { width: 1024 });
    await begin(page);
    await step(page, "Workers and resources");
    const wider = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(wider).toBe(0);
    await picture(page, "create-1024");
    await close();
  });

  test("and needs no mouse", async () => {
    const { page, close } = await open(browser, "/create");
    await begin(page);
    await page.getByRole("button", { name: "Next", exact: true }).focus();
    await page.keyboard.press("Enter");
    const name = page.getByRole("textbox", { name: "Name" });
    await name.waitFor();
    await name.focus();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("by-keys");
    await expect.poll(() => yaml(page).textContent()).toContain("name: by-keys");
    await yaml(page).focus();
    await page.keyboard.press("Tab");
    expect(await yaml(page).evaluate((one) => one.matches(":focus"))).toBe(false);
    await page.getByRole("button", { name: "Review and create", exact: true }).last().focus();
    await page.keyboard.press("Enter");
    await taken(page);
    await page.getByRole("button", { name: "Create job", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL("**/by-keys");
    await close();
  });
});
