/* SPDX-License-Identifier: MIT */
/* simpleperf.c - FILE and FILE2, entry by entry; see simpleperf.h */
#include "wire/perf/simpleperf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Source: protobuf.dev/programming-guides/encoding, "wire types". */
enum wire_type {
	VARINT = 0,
	I64 = 1,
	LEN = 2,
	I32 = 5,
};

/* A field of a message: a number, or bytes. */
struct proto_field {
	uint64_t number;
	uint64_t value;
	struct seam_cursor bytes;
};

static bool next_field(struct seam_cursor *c, struct proto_field *f)
{
	uint64_t tag;

	if (c->error || !seam_cursor_left(c))
		return false;
	tag = seam_cursor_uleb128(c);
	*f = (struct proto_field) { .number = tag >> 3 };
	switch (tag & 7) {
	case VARINT:
		f->value = seam_cursor_uleb128(c);
		break;
	case I64:
		f->value = seam_cursor_u64(c);
		break;
	case LEN:
		f->bytes = seam_cursor_split(c, (size_t)seam_cursor_count(c,
					seam_cursor_uleb128(c), 1));
		break;
	case I32:
		f->value = seam_cursor_u32(c);
		break;
	default:
		return false;
	}
	return !c->error;
}

static struct seam_bytes all_of(const struct seam_cursor *c)
{
	return (struct seam_bytes) { c->base, c->size };
}

/* The symbols are read later, by a walk over the same message. */
static bool read_message(struct seam_cursor c, struct seam_simpleperf_file *out)
{
	struct proto_field f, number;

	*out = (struct seam_simpleperf_file) {
		.is_proto = true, .symbols = c, .offset = UINT64_MAX,
	};
	while (next_field(&c, &f)) {
		if (f.number == 1)
			out->path = all_of(&f.bytes);
		else if (f.number == 2)
			out->type = (uint32_t)f.value;
		else if (f.number == 3)
			out->min_vaddr = f.value;
		/* ElfFile and KernelModule have one field, a number */
		else if (f.number == 6 || f.number == 7)
			out->offset = next_field(&f.bytes, &number) ?
				      number.value : 0;
	}
	return !c.error;
}

static struct seam_bytes take_text(struct seam_cursor *c)
{
	const char *text = seam_cursor_cstr(c);

	return (struct seam_bytes) {
		(const uint8_t *)text, text ? strlen(text) : 0,
	};
}

static bool plain_symbol(struct seam_cursor *c,
			 struct seam_simpleperf_symbol *out)
{
	out->vaddr = seam_cursor_u64(c);
	out->size = seam_cursor_u32(c);
	out->name = take_text(c);
	return !c->error;
}

/* The fields after the symbols are found by walking over these. */
static bool read_plain(struct seam_cursor c, struct seam_simpleperf_file *out)
{
	struct seam_simpleperf_symbol symbol;

	*out = (struct seam_simpleperf_file) { .offset = UINT64_MAX };
	out->path = take_text(&c);
	out->type = seam_cursor_u32(&c);
	out->min_vaddr = seam_cursor_u64(&c);
	out->n_symbols = seam_cursor_u32(&c);
	out->symbols = c;
	for (uint32_t i = 0; i < out->n_symbols; i++)
		if (!plain_symbol(&c, &symbol))
			return false;
	if ((out->type == SEAM_SIMPLEPERF_ELF ||
	     out->type == SEAM_SIMPLEPERF_KERNEL_MODULE) &&
	    seam_cursor_left(&c) >= sizeof(uint64_t))
		out->offset = seam_cursor_u64(&c);
	return !c.error;
}

struct seam_simpleperf_reader
seam_simpleperf_begin(struct seam_bytes bytes, enum seam_endian endian,
		      bool is_proto)
{
	return (struct seam_simpleperf_reader) {
		seam_cursor_over(bytes, endian), is_proto,
	};
}

bool seam_simpleperf_next(struct seam_simpleperf_reader *reader,
			  struct seam_simpleperf_file *file)
{
	struct seam_cursor entry;

	if (reader->c.error || !seam_cursor_left(&reader->c))
		return false;
	entry = seam_cursor_split(&reader->c, seam_cursor_u32(&reader->c));
	if (reader->c.error)
		return false;
	return reader->is_proto ? read_message(entry, file) :
	       read_plain(entry, file);
}

bool seam_simpleperf_symbol(struct seam_simpleperf_file *file,
			    struct seam_simpleperf_symbol *symbol)
{
	struct seam_cursor message;
	struct proto_field f;

	*symbol = (struct seam_simpleperf_symbol) { 0 };
	if (!file->is_proto)
		return file->n_symbols > 0 && file->n_symbols-- &&
		       plain_symbol(&file->symbols, symbol);
	while (next_field(&file->symbols, &f)) {
		if (f.number != 4)
			continue;
		for (message = f.bytes; next_field(&message, &f);) {
			if (f.number == 1)
				symbol->vaddr = f.value;
			else if (f.number == 2)
				symbol->size = (uint32_t)f.value;
			else if (f.number == 3)
				symbol->name = all_of(&f.bytes);
		}
		return true;
	}
	return false;
}

const char *seam_simpleperf_event_lines(struct seam_bytes meta_info)
{
	struct seam_cursor c = seam_cursor_over(meta_info, SEAM_LITTLE);
	const char *key, *value;

	while ((key = seam_cursor_cstr(&c)) && (value = seam_cursor_cstr(&c)))
		if (strcmp(key, "event_type_info") == 0)
			return value;
	return NULL;
}

struct seam_bytes seam_simpleperf_event_name(const char **lines, uint32_t type,
					     uint64_t config)
{
	size_t n = strcspn(*lines, "\n");
	struct seam_bytes name = { (const uint8_t *)*lines, n };
	char end[64];
	size_t n_end = (size_t)snprintf(end, sizeof(end),
			",%" PRIu32 ",%" PRIu64, type, config);

	*lines += n + ((*lines)[n] != '\0');
	if (n < n_end || memcmp(name.data + n - n_end, end, n_end) != 0)
		return (struct seam_bytes) { 0 };
	name.size -= n_end;
	return name;
}
