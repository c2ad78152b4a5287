import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const BUILT = "../src/mpi_trainer/server/static";

// In development the API is that of a running `odh dashboard --port 8800`.
const SERVER = process.env.ODH_DASHBOARD ?? "http://127.0.0.1:8800";

export default defineConfig({
  plugins: [react(), compressed()],
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { host: "127.0.0.1", proxy: { "/api": SERVER } },
  test: {
    environment: "jsdom",
    // Generous: a machine that does other things meanwhile makes nothing wrong, only late.
    testTimeout: 30_000,
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/setup.ts"],
    css: false,
    server: { deps: { inline: [/@patternfly/] } },
  },
});

/** NAME.gz beside every text: the server sends it to browsers that take it, which is all of them. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      for (const name of readdirSync(BUILT, { recursive: true, encoding: "utf8" })) {
        if (!/\.(js|css|svg|html)$/.test(name)) continue;
        const file = join(BUILT, name);
        const level = constants.Z_BEST_COMPRESSION;
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level }));
      }
    },
  };
}
