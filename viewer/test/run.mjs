/* SPDX-License-Identifier: MIT */
/*
 * run.mjs - bundle tests written in TypeScript and run them by node
 *
 *	node test/run.mjs FILE.test.ts...
 */
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "seam-viewer-"));

try {
	await build({
		entryPoints: process.argv.slice(2), outdir: folder,
		bundle: true, platform: "node", format: "esm",
		outExtension: { ".js": ".mjs" }, sourcemap: "inline",
		logLevel: "error",
	});
	const run = spawnSync(process.execPath, [
		"--enable-source-maps", "--test", "--test-reporter=tap",
		folder + "/"], { stdio: "inherit" });

	process.exitCode = run.status ?? 1;
} finally {
	rmSync(folder, { recursive: true });
}
