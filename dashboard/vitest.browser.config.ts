import { defineConfig } from "vitest/config";

// A real browser against a real server: one at a time, and slower than a unit test may be.
export default defineConfig({
  test: {
    environment: "node",
    include: ["browser/**/*.spec.ts"],
    globalSetup: ["browser/server.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    // Generous: a machine that does other things meanwhile makes nothing wrong, only late.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 120_000,
  },
});
