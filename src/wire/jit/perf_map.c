/* SPDX-License-Identifier: MIT */
/* perf_map.c - lines of "START SIZE NAME"; see perf_map.h */
#include "wire/jit/perf_map.h"

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

/* The value of a hexadecimal digit, or 16. */
static unsigned int digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10u : 16;
}

/* A number and the blank behind it. */
static bool take_hex(struct seam_bytes *line, uint64_t *value)
{
	size_t n = 0;

	skip_blanks(line);
	if (line->size > 2 && line->data[0] == '0' &&
	    (line->data[1] | 0x20) == 'x')
		skip(line, 2);
	*value = 0;
	while (n < line->size && digit(line->data[n]) < 16) {
		if (*value >> 60)
			return false;
		*value = *value << 4 | digit(line->data[n++]);
	}
	if (!n || n >= line->size ||
	    (line->data[n] != ' ' && line->data[n] != '\t'))
		return false;
	skip(line, n);
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
