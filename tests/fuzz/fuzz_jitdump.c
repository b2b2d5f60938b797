/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jitdump.c - any bytes as a dump
 *
 * Oracle: every record moves the reader by at least a prefix; all records that
 * were read, written again from their tables, read as the same; code that is
 * found at an address covers it, with lines that lie in it.
 */
#include "fuzz.h"
#include "symbol/jit/jit_code.h"
#include "wire/jit/jitdump.h"

/* The size that a record's table gives it. */
static size_t write_record(struct seam_jitdump_record *record,
			   enum seam_endian endian, uint8_t *buf, size_t cap)
{
	const struct seam_record *table = seam_jitdump_table(record->id);
	size_t size = seam_wire_write(table, &record->prefix, endian, NULL, 0);

	record->prefix.total_size = (uint32_t)size;
	return seam_wire_write(table, &record->prefix, endian, buf, cap);
}

static void same(const struct seam_jitdump_record *a,
		 const struct seam_jitdump_record *b)
{
	must(a->id == b->id && a->prefix.timestamp == b->prefix.timestamp);
	if (a->id == SEAM_JITDUMP_LOAD) {
		must(a->load.code_addr == b->load.code_addr);
		must(strcmp(a->load.name, b->load.name) == 0);
		must(a->load.code.size == b->load.code.size);
		must(!a->load.code.size ||
		     !memcmp(a->load.code.data, b->load.code.data,
			     a->load.code.size));
	}
	if (a->id == SEAM_JITDUMP_UNWINDING_INFO)
		must(a->unwinding_info.unwinding_data.size ==
		     b->unwinding_info.unwinding_data.size);
}

static void walk_lines(const struct seam_jitdump_record *record,
		       enum seam_endian endian)
{
	struct seam_jitdump_lines lines =
		seam_jitdump_lines_make(&record->debug_info, endian);
	struct seam_jitdump_debug_entry entry;
	uint64_t n = 0;

	while (seam_jitdump_line(&lines, &entry)) {
		must(strlen(entry.name) < record->debug_info.entries.size);
		n++;
	}
	must(n <= record->debug_info.nr_entry);
	must(n <= record->debug_info.entries.size / 17);
}

static void check_object(struct seam_jit_code *jit, uint32_t i)
{
	const struct seam_jit_object *o = seam_jit_code_object(jit, i);
	const struct seam_jit_line *lines;
	struct seam_jit_location l;
	size_t n = seam_jit_code_lines(jit, i, &lines);

	for (size_t k = 0; k < n; k++) {
		must(lines[k].addr - o->start_addr < o->size);
		must(!k || lines[k - 1].addr <= lines[k].addr);
		must(strlen(lines[k].file) < SIZE_MAX);
	}
	if (seam_jit_code_find(jit, 1, o->start_addr, o->loaded_ns, &l))
		must(l.offset < seam_jit_code_object(jit, l.object)->size);
}

static void check_code(struct seam_bytes bytes)
{
	struct seam_jit_code_options options = { .pid = 1 };
	struct seam_jit_code *jit = seam_jit_code_new();

	must(!seam_jit_code_add_dump(jit, bytes, &options, NULL));
	for (uint32_t i = 0; i < seam_jit_code_count(jit); i++)
		check_object(jit, i);
	seam_jit_code_free(jit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_bytes bytes = { data, size };
	struct seam_jitdump_reader one, two;
	struct seam_jitdump_record a, b;
	size_t cap = 2 * size + 64, n, before;
	uint8_t *copy;

	if (seam_jitdump_begin(&one, bytes, NULL))
		return 0;
	copy = malloc(cap);
	one.header.total_size = SEAM_JITDUMP_HEADER_BYTES;
	n = seam_wire_write(&seam_jitdump_header_table, &one.header,
			    one.endian, copy, cap);
	for (before = one.cursor.pos; seam_jitdump_next(&one, &a);
	     before = one.cursor.pos) {
		must(one.cursor.pos >= before + SEAM_JITDUMP_PREFIX_BYTES);
		if (a.id == SEAM_JITDUMP_DEBUG_INFO)
			walk_lines(&a, one.endian);
		n += write_record(&a, one.endian, copy + n, cap - n);
		must(n <= cap);
	}
	must(!seam_jitdump_begin(&two, (struct seam_bytes) { copy, n }, NULL));
	must(!seam_jitdump_begin(&one, bytes, NULL));
	while (seam_jitdump_next(&one, &a)) {
		must(seam_jitdump_next(&two, &b));
		same(&a, &b);
	}
	must(!seam_jitdump_next(&two, &b) && two.tail_bytes == 0);
	must(two.n_notes[SEAM_JITDUMP_BAD_RECORD] == 0);
	free(copy);
	check_code(bytes);
	return 0;
}
