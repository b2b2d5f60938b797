/* SPDX-License-Identifier: MIT */
/* perf_map.c - lines of "START SIZE NAME"; see perf_map.h */
#include "wire/jit/perf_map.h"

#include <stdlib.h>

#include "base/text.h"

static bool take_line(struct seam_perf_map_reader *reader,
		      struct seam_bytes *line)
{
	size_t left = reader->bytes.size - reader->pos;
	const uint8_t *start, *end;

	if (!left)
		return false;		/* of an empty file data is NULL */
	start = reader->bytes.data + reader->pos;
	end = memchr(start, '\n', left);
	line->data = start;
	line->size = end ? (size_t)(end - start) : left;
	reader->pos += line->size + (end != NULL);
	if (line->size && start[line->size - 1] == '\r')
		line->size--;
	return true;
}

static void skip(struct seam_bytes *line, size_t n)
{
	line->data += n;
	line->size -= n;
}

static void skip_blanks(struct seam_bytes *line)
{
	while (line->size && (*line->data == ' ' || *line->data == '\t'))
		skip(line, 1);
}

/* A number and the blank after it. */
static bool take_hex(struct seam_bytes *line, uint64_t *value)
{
	const char *text, *end, *after;

	skip_blanks(line);
	if (line->size > 2 && line->data[0] == '0' &&
	    (line->data[1] | 0x20) == 'x')
		skip(line, 2);
	text = (const char *)line->data;
	end = text + line->size;
	after = seam_text_number(text, end, 16, value);
	if (!after || after == end || (*after != ' ' && *after != '\t'))
		return false;
	skip(line, (size_t)(after - text));
	return true;
}

static bool read_line(struct seam_bytes line, struct seam_perf_map_entry *entry)
{
	if (line.size > SEAM_PERF_MAP_LINE_BYTES ||
	    !take_hex(&line, &entry->start_addr) ||
	    !take_hex(&line, &entry->size))
		return false;
	skip_blanks(&line);
	entry->name = line;
	return line.size && entry->size &&
	       !memchr(line.data, '\0', line.size) &&
	       entry->size - 1 <= UINT64_MAX - entry->start_addr;
}

bool seam_perf_map_next(struct seam_perf_map_reader *reader,
			struct seam_perf_map_entry *entry)
{
	struct seam_bytes line;

	while (take_line(reader, &line)) {
		entry->line = line.data;
		if (read_line(line, entry)) {
			reader->n_entries++;
			return true;
		}
		skip_blanks(&line);
		if (line.size)
			reader->n_bad++;
	}
	return false;
}

static bool is_map_name(const char *path)
{
	const char *name = basename(path);
	size_t digits;

	if (strncmp(name, "perf-", 5))
		return false;
	digits = strspn(name + 5, "0123456789");
	return digits && strcmp(name + 5 + digits, ".map") == 0;
}

bool seam_perf_map_is(const char *path, struct seam_bytes bytes)
{
	const uint8_t *end = bytes.size ? memchr(bytes.data, '\n',
						 bytes.size) : NULL;
	struct seam_perf_map_reader reader;
	struct seam_perf_map_entry entry;

	if (is_map_name(path))
		return true;
	if (end)
		bytes.size = (size_t)(end - bytes.data);
	reader = seam_perf_map_begin(bytes);
	return seam_perf_map_next(&reader, &entry);
}

static void print_entry(FILE *out, enum seam_line_form form,
			struct seam_bytes bytes,
			const struct seam_perf_map_entry *entry)
{
	char *name = strndup((const char *)entry->name.data,
			     entry->name.size);
	struct seam_line line = seam_line_begin(out, form,
		(uint64_t)(entry->line - bytes.data), "entry", 0);

	seam_line_hex(&line, "start", entry->start_addr);
	seam_line_hex(&line, "size", entry->size);
	seam_line_string(&line, "name", name ? name : "");
	seam_line_end(&line);
	free(name);
}

int seam_perf_map_print(FILE *out, struct seam_bytes bytes,
			enum seam_line_form form, uint64_t *n_damaged)
{
	struct seam_perf_map_reader reader = seam_perf_map_begin(bytes);
	struct seam_perf_map_entry entry;

	while (seam_perf_map_next(&reader, &entry) && !ferror(out))
		print_entry(out, form, bytes, &entry);
	*n_damaged = reader.n_bad;
	return 0;
}
