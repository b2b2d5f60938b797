/* SPDX-License-Identifier: MIT */
/* source_text.c - each file read once; see source_text.h */
#include "cli/source_text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

enum { MAX_SOURCE_BYTES = 16 << 20 };

static void open_source(const struct seam_source_text *sources,
			struct seam_source_file *source)
{
	size_t n = sources->symfs ? sources->symfs->n : 0;
	char path[PATH_MAX];
	int r = -1;

	for (size_t i = 0; i < n && r < 0; i++) {
		snprintf(path, sizeof(path), "%s/%s",
			 sources->symfs->items[i], source->path);
		r = seam_file_read(&source->file, AT_FDCWD, path,
				   MAX_SOURCE_BYTES, NULL);
	}
	if (r < 0)
		r = seam_file_read(&source->file, AT_FDCWD, source->path,
				   MAX_SOURCE_BYTES, NULL);
	if (r < 0)
		source->file = (struct seam_file) { 0 };
}

static void find_lines(struct seam_source_file *source)
{
	struct seam_bytes bytes = source->file.bytes;
	bool is_start = true;

	for (size_t i = 0; i < bytes.size; i++) {
		uint32_t *slot = is_start ? SEAM_ARRAY_PUSH(&source->starts) :
				 NULL;

		if (slot)
			*slot = (uint32_t)i;
		is_start = bytes.data[i] == '\n';
	}
}

static struct seam_source_file *find(struct seam_source_text *sources,
				     const char *path)
{
	struct seam_source_file *slot;

	for (size_t i = 0; i < sources->files.n; i++)
		if (strcmp(sources->files.items[i].path, path) == 0)
			return &sources->files.items[i];
	slot = SEAM_ARRAY_PUSH(&sources->files);
	if (!slot)
		return NULL;
	*slot = (struct seam_source_file) { .path = strdup(path) };
	if (!slot->path) {
		sources->files.n--;
		return NULL;
	}
	open_source(sources, slot);
	find_lines(slot);
	return slot;
}

const char *seam_source_text_line(void *context, const char *path,
				  uint32_t line)
{
	struct seam_source_text *sources = context;
	struct seam_source_file *source = *path ? find(sources, path) : NULL;
	const char *text;
	size_t left, n;

	if (!source || line == 0 || line > source->starts.n)
		return NULL;
	text = (const char *)source->file.bytes.data +
	       source->starts.items[line - 1];
	left = source->file.bytes.size - source->starts.items[line - 1];
	for (n = 0; n < left && text[n] != '\n' && text[n] != '\r'; n++)
		;
	if (n >= sizeof(sources->line))
		n = sizeof(sources->line) - 1;
	/* A tab would be shown as an escape. */
	for (size_t i = 0; i < n; i++)
		sources->line[i] = text[i] == '\t' ? ' ' : text[i];
	sources->line[n] = '\0';
	return sources->line;
}

void seam_source_text_fini(struct seam_source_text *sources)
{
	for (size_t i = 0; i < sources->files.n; i++) {
		free(sources->files.items[i].path);
		free(sources->files.items[i].starts.items);
		seam_file_close(&sources->files.items[i].file);
	}
	free(sources->files.items);
	*sources = (struct seam_source_text) { 0 };
}
