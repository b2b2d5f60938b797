/* SPDX-License-Identifier: MIT */
/* perf_map.c - lines of "START SIZE NAME"; see perf_map.h */
#include "wire/jit/perf_map.h"

#include <inttypes.h>

#include "base/text.h"

/* The line at *@pos of @bytes; false at the end. */
static bool take_line(struct seam_bytes bytes, size_t *pos,
		      struct seam_bytes *line, bool *is_ended)
{
	size_t left = bytes.size - *pos;
	const uint8_t *end;

	if (!left)
		return false;		/* of an empty file data is NULL */
	line->data = bytes.data + *pos;
	end = memchr(line->data, '\n', left);
	line->size = end ? (size_t)(end - line->data) : left;
	*is_ended = end;
	*pos += line->size + *is_ended;
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
	bool is_ended;

	while (take_line(reader->bytes, &reader->pos, &line, &is_ended)) {
		if (line.size && line.data[line.size - 1] == '\r')
			line.size--;
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

int seam_perf_map_print(FILE *out, struct seam_bytes bytes,
			enum seam_line_form form, uint64_t *n_damaged)
{
	struct seam_perf_map_reader reader = seam_perf_map_begin(bytes);
	struct seam_perf_map_entry entry;

	while (seam_perf_map_next(&reader, &entry) && !ferror(out)) {
		struct seam_line line = seam_line_begin(out, form,
			(uint64_t)(entry.line - bytes.data), "entry", 0);

		seam_line_hex(&line, "start", entry.start_addr);
		seam_line_hex(&line, "size", entry.size);
		seam_line_text(&line, "name", entry.name);
		seam_line_end(&line);
	}
	*n_damaged = reader.n_bad;
	return 0;
}

/* -- when lines were written --------------------------------------------- */

/* A decimal number and the blank or end after it. */
static bool take_number(const char **at, const char *end, uint64_t *value)
{
	const char *p = seam_text_number(*at, end, 10, value);

	if (!p || (p < end && *p != ' '))
		return false;
	*at = p + (p < end);
	return true;
}

static bool read_mark(struct seam_bytes line, struct seam_perf_map_mark *mark)
{
	const char *at = (const char *)line.data, *end = at + line.size;

	return take_number(&at, end, &mark->offset) &&
	       take_number(&at, end, &mark->from_ns) &&
	       take_number(&at, end, &mark->to_ns) && at == end &&
	       mark->from_ns <= mark->to_ns;
}

bool seam_perf_map_times_next(struct seam_perf_map_times *times,
			      struct seam_perf_map_mark *mark)
{
	struct seam_bytes line;
	bool is_ended;

	while (take_line(times->bytes, &times->pos, &line, &is_ended)) {
		/* a recorder that was killed may leave half a line */
		if (!is_ended || !line.size || line.data[0] == '#')
			continue;
		if (read_mark(line, mark) &&
		    mark->offset >= times->last.offset &&
		    mark->to_ns >= times->last.to_ns) {
			if (mark->from_ns < times->last.from_ns)
				mark->from_ns = times->last.from_ns;
			times->last = *mark;
			return true;
		}
		times->n_bad++;
	}
	return false;
}

size_t seam_perf_map_mark_put(char *to, const struct seam_perf_map_mark *mark)
{
	int n = snprintf(to, SEAM_PERF_MAP_MARK_BYTES,
			 "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", mark->offset,
			 mark->from_ns, mark->to_ns);

	return n > 0 ? (size_t)n : 0;
}
