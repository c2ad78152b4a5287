/** A page of the dashboard in Debian's Chromium, logged in, and what it asked for. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect, inject } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PROGRAM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export type Look = "light" | "dark" | "high-contrast";
export const LOOKS: readonly Look[] = ["light", "dark", "high-contrast"];
const THEMES: Record<Look, string> = {
  light: "light normal",
  dark: "dark normal",
  "high-contrast": "light high",
};

export function launch(): Promise<Browser> {
  const root = process.getuid?.() === 0;
  // Chromium's own sandbox needs a user that is not root.
  return chromium.launch({ executablePath: PROGRAM, args: root ? ["--no-sandbox"] : [] });
}

export interface Opened {
  page: Page;
  /** Addresses that the browser asked for, and what it said on its console as an error. */
  asked: string[];
  errors: string[];
  close: () => Promise<void>;
}

interface Size {
  look?: Look;
  width?: number;
  height?: number;
}

/** Opens `path` as somebody who has followed the address that `odh dashboard` printed. */
export async function open(
  browser: Browser,
  path: string,
  { address = inject("address"), ...size }: Size & { address?: string } = {},
): Promise<Opened> {
  const opened = await blank(browser, {}, size);
  if (path === "/") await opened.page.goto(address);
  else {
    // The cookie alone: the landing page need not be drawn for each test.
    await opened.page.context().request.get(address);
    await opened.page.goto(new URL(path, address).href);
  }
  return opened;
}

/** Opens an address with headers that a proxy before the server adds. */
export async function openWith(
  browser: Browser,
  url: string,
  headers: Record<string, string>,
  size: Size = {},
): Promise<Opened> {
  const opened = await blank(browser, headers, size);
  await opened.page.goto(url);
  return opened;
}

async function blank(
  browser: Browser,
  extraHTTPHeaders: Record<string, string>,
  { look = "light", width = 1280, height = 900 }: Size,
): Promise<Opened> {
  const context = await browser.newContext({
    locale: "en-US",
    timezoneId: "UTC",
    reducedMotion: "reduce",
    viewport: { width, height },
    permissions: ["clipboard-read", "clipboard-write"],
    extraHTTPHeaders,
  });
  await context.addInitScript(`localStorage.setItem("odh-theme", "${THEMES[look]}")`);
  // Generous: a machine that does other things meanwhile makes nothing wrong, only late.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const asked: string[] = [];
  const errors: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  return { page, asked, errors, close: () => context.close() };
}

/** Nothing on the page stands for something that is still to come. */
export async function settled(page: Page): Promise<void> {
  const waits = page.locator(".pf-v6-c-skeleton, .pf-v6-c-spinner");
  await expect.poll(() => waits.count(), { timeout: 20_000 }).toBe(0);
}

/** For docs/dashboard.md, where `make pictures-dashboard` asks for pictures. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.PICTURES;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

/** No rule is off: every violation of WCAG 2 A and AA and of good practice fails. */
export async function accessible(page: Page): Promise<void> {
  // By evaluation, since the page's policy takes no script from elsewhere.
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: () => Promise<{ violations: Violation[] }> } })
      .axe;
    const { violations } = await axe.run();
    return violations.map(
      (one) =>
        `${one.id} (${one.impact}): ${one.nodes.map((node) => node.html.slice(0, 200)).join("\n  ")}`,
    );
  });
  expect(found).toEqual([]);
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}

/** Everything came from the server that was opened. */
export function ownOriginOnly(asked: readonly string[], address = inject("address")): void {
  const { origin } = new URL(address);
  expect(asked.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith("data:"))).toEqual(
    [],
  );
}
