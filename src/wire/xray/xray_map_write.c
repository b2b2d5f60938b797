/* SPDX-License-Identifier: MIT */
/* xray_map_write.c - see xray_map_write.h */
#include "wire/xray/xray_map_write.h"

#include <inttypes.h>

#include "base/text.h"

/* A string of JSON is one of YAML too. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	seam_text_put(out, text, SEAM_TEXT_JSON);
	fputc('"', out);
}

static void put_image(FILE *out, uint32_t first_id, const char *path)
{
	fprintf(out, "# image %" PRIu32 " ", first_id);
	put_quoted(out, path);
	fputc('\n', out);
}

static void put_sled(FILE *out, const struct seam_xray_map_function *f,
		     const char *kind)
{
	fprintf(out, "- { id: %" PRIu32 ", address: 0x%" PRIx64 ", function: "
		"0x%" PRIx64 ", kind: %s, always-instrument: true, "
		"function-name: ", f->id, f->address, f->address, kind);
	put_quoted(out, f->name);
	fputs(", version: 2 }\n", out);
}

void seam_xray_map_write(FILE *out, size_t n,
			 struct seam_xray_map_function (*function_at)(
					const void *context, size_t i),
			 const void *context)
{
	const char *path = "";

	for (size_t i = 0; i < n; i++) {
		const struct seam_xray_map_function f = function_at(context, i);

		/* images may have ids that are not in a row */
		if (strcmp(f.path, path) != 0)
			put_image(out, f.id, f.path);
		path = f.path;
	}
	fputs("---\n", out);
	for (size_t i = 0; i < n; i++) {
		const struct seam_xray_map_function f = function_at(context, i);

		put_sled(out, &f, "function-enter");
		if (!f.entries_only)
			put_sled(out, &f, "function-exit");
	}
	fputs("...\n", out);
}
