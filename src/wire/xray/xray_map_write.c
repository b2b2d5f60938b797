/* SPDX-License-Identifier: MIT */
/* xray_map_write.c - see xray_map_write.h */
#include "wire/xray/xray_map_write.h"

#include <inttypes.h>

#include "base/text.h"

/* For the longest line of an image or entry: a path of 4 KiB, escaped. */
enum { ROOM = 32 << 10 };

/* A string of JSON is one of YAML too. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	seam_text_put(out, text, SEAM_TEXT_JSON);
	fputc('"', out);
}

static void put_sled(FILE *out, const struct seam_xray_map_function *f,
		     const char *kind)
{
	fprintf(out, "- { id: %" PRIu32 ", address: 0x%" PRIx64 ", function: "
		"0x%" PRIx64 ", kind: %s, always-instrument: true, ", f->id,
		f->address, f->address, kind);
	if (f->name[0]) {
		fputs("function-name: ", out);
		put_quoted(out, f->name);
		fputs(", ", out);
	}
	fputs("version: 2 }\n", out);
}

static bool is_full(FILE *out, uint64_t max_bytes)
{
	return max_bytes < ROOM || (uint64_t)ftello(out) > max_bytes - ROOM;
}

void seam_xray_map_write(FILE *out,
			 const struct seam_xray_map_function *functions,
			 size_t n, uint64_t max_bytes)
{
	const char *path = "", *build_id = "";

	/* images may have ids that are not in a row */
	for (size_t i = 0; i < n; i++) {
		const struct seam_xray_map_function *f = &functions[i];

		if (strcmp(f->path, path) == 0 &&
		    strcmp(f->build_id, build_id) == 0)
			continue;
		/* functions without their image would be in another one */
		if (is_full(out, max_bytes)) {
			n = 0;
			break;
		}
		fprintf(out, "# image %" PRIu32 " ", f->id);
		put_quoted(out, f->path);
		fprintf(out, f->build_id[0] ? " %s\n" : "%s\n", f->build_id);
		path = f->path;
		build_id = f->build_id;
	}
	fputs("---\n", out);
	for (size_t i = 0; i < n && !is_full(out, max_bytes); i++) {
		put_sled(out, &functions[i], "function-enter");
		if (!functions[i].entries_only)
			put_sled(out, &functions[i], "function-exit");
	}
	fputs("...\n", out);
}
