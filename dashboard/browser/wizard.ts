/** What tests do with the form for new jobs. */
import type { Page } from "playwright-core";
import { inject } from "vitest";

/** Jobs of this machine wait for free cores, and the one that runs all the time holds them. */
export async function change(job: string, how: "suspend" | "resume"): Promise<void> {
  const address = new URL(inject("address"));
  const token = address.searchParams.get("token") ?? "";
  const path = `/api/v1/namespaces/default/mpijobs/${job}/${how}`;
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(new URL(path, address), { method: "POST", headers });
  if (!answer.ok) throw new Error(await answer.text());
}

/** A server may have no word on quotas: the page goes without, and the browser notes the 404. */
export const faults = (errors: readonly string[]) =>
  errors.filter((one) => !one.includes("status of 404"));

export const step = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Steps" }).getByRole("button", { name }).click();
export const submit = (page: Page) =>
  page.getByRole("button", { name: "Create job", exact: true }).click();
export const yaml = (page: Page) => page.getByRole("textbox", { name: "The job as YAML" });
export const taken = (page: Page) => page.getByText("The server would take this job.").waitFor();

export async function begin(page: Page): Promise<void> {
  await page.getByRole("radio", { name: "First job" }).waitFor();
  await yaml(page).waitFor();
}

export async function named(page: Page, name: string): Promise<void> {
  await step(page, "Name and project");
  await page.getByRole("textbox", { name: "Name" }).fill(name);
}

export async function retyped(page: Page, change: (text: string) => string): Promise<void> {
  const lines = await yaml(page).locator(".cm-line").allTextContents();
  await yaml(page).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(change(lines.join("\n")));
}
