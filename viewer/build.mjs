// SPDX-License-Identifier: MIT
// build.mjs - src/ and page.in.html to page.html, which is committed
//
// node build.mjs [OUT]: one file with the style and the script inside, so that
// it opens from a disk.  The same sources give the same bytes.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(folder, "page.html");

const { outputFiles } = await build({
	absWorkingDir: folder,
	entryPoints: ["src/main.tsx"],
	bundle: true,
	minify: true,
	format: "iife",
	charset: "ascii",
	target: ["chrome115", "firefox115", "safari16.4"],
	jsx: "automatic",
	jsxImportSource: "preact",
	legalComments: "none",
	write: false,
	outdir: "out",
});

function output(ending) {
	return outputFiles.find(f => f.path.endsWith(ending))?.text.trim() ?? "";
}

function hash(text) {
	return createHash("sha256").update(text).digest("base64");
}

const script = output(".js"), style = output(".css");

if (/<\/(script|style)|<!--/i.test(script + style))
	throw new Error("a text in the sources would end the script element");
const values = {
	"@SCRIPT_HASH@": hash(script), "@STYLE_HASH@": hash(style),
	"@SCRIPT@": script, "@STYLE@": style,
};
const page = readFileSync(join(folder, "page.in.html"), "utf8")
	.replace(/@\w+@/g, name => values[name]);

writeFileSync(out, page);
