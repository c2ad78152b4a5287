import { defineConfig } from "vitest/config";

// A real browser against a real server: one at a time, and slower than a unit test may be.
export default defineConfig({
  test: {
    environment: "node",
    // Those of browser/full measure, or take minutes: they run where they are named.
    include: process.argv.some((one) => one.includes("full/"))
      ? ["browser/full/*.spec.ts"]
      : ["browser/*.spec.ts"],
    globalSetup: ["browser/server.ts"],
    fileParallelism: false,
    testTimeout: 300_000,
    // Generous: a machine that does other things meanwhile makes nothing wrong, only late.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 120_000,
  },
});
