/* SPDX-License-Identifier: MIT */
/* test_jitdump.c - a dump is read as right as its bytes allow */
#include "wire/jit/jitdump.h"

#include "jit_corpus.h"
#include "jit_dump.h"
#include "unit.h"

/* One record of every kind, and one of none. */
static struct dump every_kind(enum seam_endian endian)
{
	static const char *const names[] = { "a.js", "\xff", "bb.js" };
	struct dump d = { .endian = endian };

	put_header(&d);
	put_debug(&d, 0x1000, 0x1000, names, 3);
	put_unwinding(&d);
	put_load(&d, 7, "main", 0x1000, 3, 1);
	put_move(&d, 8, 0x1000, 0x2000, 3, 1);
	put_prefix(&d, 99, 16);
	put_prefix(&d, 3, 16);
	return d;
}

static struct seam_jitdump_reader begin(const struct dump *d)
{
	struct seam_jitdump_reader r;

	assert_int_equal(seam_jitdump_begin(
		&r, (struct seam_bytes) { d->bytes, d->size }, NULL), 0);
	return r;
}

UNIT_TEST(reads_every_kind_in_both_byte_orders)
{
	for (int e = SEAM_LITTLE; e <= SEAM_BIG; e++) {
		struct dump d = every_kind((enum seam_endian)e);
		struct seam_jitdump_reader r = begin(&d);
		struct seam_jitdump_record rec;

		assert_int_equal(r.header.pid, 42);
		assert_true(seam_jitdump_next(&r, &rec));
		assert_int_equal(rec.id, SEAM_JITDUMP_DEBUG_INFO);
		assert_int_equal(rec.pos, 40);
		assert_true(seam_jitdump_next(&r, &rec));
		assert_int_equal(rec.id, SEAM_JITDUMP_UNWINDING_INFO);
		assert_int_equal(rec.unwinding_info.unwinding_data.size, 27);
		assert_true(seam_jitdump_next(&r, &rec));
		assert_int_equal(rec.id, SEAM_JITDUMP_LOAD);
		assert_string_equal(rec.load.name, "main");
		assert_int_equal(rec.load.code_addr, 0x1000);
		assert_memory_equal(rec.load.code.data, "\x31\xc0\xc3", 3);
		assert_true(seam_jitdump_next(&r, &rec));
		assert_int_equal(rec.move.new_code_addr, 0x2000);
		assert_true(seam_jitdump_next(&r, &rec));
		assert_int_equal(rec.id, SEAM_JITDUMP_UNKNOWN);
		assert_true(seam_jitdump_next(&r, &rec));
		assert_int_equal(rec.id, SEAM_JITDUMP_CLOSE);
		assert_int_equal(rec.prefix.timestamp, 9);
		assert_false(seam_jitdump_next(&r, &rec));
		assert_int_equal(r.tail_bytes, 0);
		assert_int_equal(r.n_notes[SEAM_JITDUMP_UNKNOWN_RECORD], 1);
	}
}

static size_t count_records(const uint8_t *data, size_t size,
			    struct seam_jitdump_reader *r)
{
	struct seam_jitdump_record rec;
	size_t n = 0, before;

	if (seam_jitdump_begin(r, (struct seam_bytes) { data, size }, NULL))
		return 0;
	for (before = r->cursor.pos; seam_jitdump_next(r, &rec); n++) {
		struct seam_jitdump_debug_entry entry;
		struct seam_jitdump_lines lines;

		assert_true(r->cursor.pos >= before + 16);
		before = r->cursor.pos;
		if (rec.id != SEAM_JITDUMP_DEBUG_INFO)
			continue;
		lines = seam_jitdump_lines_make(&rec.debug_info, r->endian);
		while (seam_jitdump_line(&lines, &entry))
			assert_non_null(entry.name);
	}
	return n;
}

UNIT_TEST(every_truncation_keeps_what_is_before_it)
{
	struct dump d = every_kind(SEAM_LITTLE);
	struct seam_jitdump_reader r = begin(&d);
	struct seam_jitdump_record rec;
	size_t end[6], n = 0;

	while (seam_jitdump_next(&r, &rec))
		end[n++] = r.cursor.pos;
	assert_int_equal(n, 6);
	for (size_t size = 0; size < d.size; size++) {
		uint8_t *copy = malloc(size ? size : 1);
		size_t whole = 0;

		memcpy(copy, d.bytes, size);
		while (whole < n && end[whole] <= size)
			whole++;
		assert_int_equal(count_records(copy, size, &r), whole);
		if (size > 40 && (!whole || end[whole - 1] != size)) {
			assert_int_equal(r.n_notes[SEAM_JITDUMP_BAD_TAIL], 1);
			assert_int_equal(r.tail_bytes,
					 size - (whole ? end[whole - 1] : 40));
		}
		free(copy);
	}
}

/* Magic, version and sizes decide where records are; all else is one's own. */
static bool places_records(size_t at)
{
	struct dump d = every_kind(SEAM_LITTLE);
	struct seam_jitdump_reader r = begin(&d);
	struct seam_jitdump_record rec;

	while (seam_jitdump_next(&r, &rec))
		if (at >= rec.pos + 4 && at < rec.pos + 8)
			return true;
	return at < 12;
}

UNIT_TEST(a_flipped_byte_costs_at_most_its_record)
{
	struct dump d = every_kind(SEAM_LITTLE);

	for (size_t i = 0; i < d.size * 8; i++) {
		struct seam_jitdump_reader r;
		uint8_t *copy = malloc(d.size);
		size_t n;

		memcpy(copy, d.bytes, d.size);
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
		n = count_records(copy, d.size, &r);
		assert_true(places_records(i / 8) || n >= 5);
		free(copy);
	}
}

UNIT_TEST(records_whose_sizes_disagree_are_passed_over)
{
	struct dump d = { .endian = SEAM_LITTLE };
	struct seam_jitdump_reader r;
	struct seam_jitdump_record rec;
	size_t at;

	put_header(&d);
	at = put_load(&d, 7, "liar", 0x1000, 3, 1);
	d.bytes[at + 16 + 8 + 16 + 3] = 0x40;	/* code_size: 1 GiB */
	at = put_unwinding(&d);
	d.bytes[at + 16] = 33;			/* one byte too many */
	put_prefix(&d, 1, 16);			/* a move of nothing */
	put_load(&d, 7, "honest", 0x2000, 3, 1);
	r = begin(&d);
	assert_true(seam_jitdump_next(&r, &rec));
	assert_string_equal(rec.load.name, "honest");
	assert_false(seam_jitdump_next(&r, &rec));
	assert_int_equal(r.n_notes[SEAM_JITDUMP_BAD_RECORD], 3);
}

UNIT_TEST(a_record_that_cannot_be_skipped_ends_the_file)
{
	for (uint32_t size = 0; size < 16; size++) {
		struct dump d = { .endian = SEAM_LITTLE };
		struct seam_jitdump_reader r;
		struct seam_jitdump_record rec;

		put_header(&d);
		put_prefix(&d, 0, size);
		put_load(&d, 7, "f", 0x1000, 3, 1);
		r = begin(&d);
		assert_false(seam_jitdump_next(&r, &rec));
		assert_false(seam_jitdump_next(&r, &rec));
		assert_int_equal(r.tail_bytes, d.size - 40);
	}
}

UNIT_TEST(code_is_what_ends_the_record)
{
	struct dump d = { .endian = SEAM_LITTLE };
	struct seam_jitdump_reader r;
	struct seam_jitdump_record rec;
	size_t at;

	put_header(&d);
	at = put_load(&d, 7, "padded", 0x1000, 3, 1);
	d.bytes[at + 16 + 8 + 16] = 1;		/* code_size */
	at = put_load(&d, 7, "x", 0x2000, 3, 1);
	d.bytes[at + 57] = 'y';			/* the name's NUL is gone */
	r = begin(&d);
	assert_true(seam_jitdump_next(&r, &rec));
	assert_string_equal(rec.load.name, "padded");
	assert_int_equal(rec.load.code.size, 1);
	assert_int_equal(rec.load.code.data[0], 0xc3);
	assert_true(seam_jitdump_next(&r, &rec));
	assert_string_equal(rec.load.name, "");
	assert_memory_equal(rec.load.code.data, "\x31\xc0\xc3", 3);
	assert_int_equal(r.n_notes[SEAM_JITDUMP_NO_NAME], 1);
}

UNIT_TEST(odd_headers_are_read_with_a_note)
{
	struct dump d = { .endian = SEAM_LITTLE };
	struct seam_jitdump_reader r;
	struct seam_jitdump_record rec;

	put(&d, &seam_jitdump_header_table, &(struct seam_jitdump_header) {
		.magic = SEAM_JITDUMP_MAGIC, .version = 2, .total_size = 48,
		.pad1 = 0xdeadbeef, .flags = UINT64_C(0x65702f6863720103),
	});
	d.size += 8;
	put_load(&d, 7, "f", 0x1000, 3, 1);
	r = begin(&d);
	assert_int_equal(r.n_notes[SEAM_JITDUMP_ODD_VERSION], 1);
	assert_int_equal(r.n_notes[SEAM_JITDUMP_ODD_HEADER_SIZE], 1);
	assert_int_equal(r.n_notes[SEAM_JITDUMP_ODD_FLAGS], 1);
	assert_int_equal(r.n_notes[SEAM_JITDUMP_NO_MACHINE], 1);
	assert_true(seam_jitdump_next(&r, &rec));
	assert_string_equal(rec.load.name, "f");
}

UNIT_TEST(other_files_are_refused_with_a_reason)
{
	struct seam_jitdump_reader r;
	struct seam_err err = { 0 };
	struct dump d = { .endian = SEAM_LITTLE };

	put_header(&d);
	d.bytes[0]++;
	assert_int_equal(seam_jitdump_begin(
		&r, (struct seam_bytes) { d.bytes, 40 }, &err), -EBADMSG);
	assert_non_null(strstr(err.cause[0], "magic"));
	d.bytes[0]--;
	d.bytes[4] = 3;
	assert_int_equal(seam_jitdump_begin(
		&r, (struct seam_bytes) { d.bytes, 40 }, &err), -ENOTSUP);
	assert_int_equal(seam_jitdump_begin(
		&r, (struct seam_bytes) { NULL, 0 }, &err), -ENODATA);
}

static struct seam_jitdump_lines lines_of(struct dump *d,
					  struct seam_jitdump_record *rec)
{
	struct seam_jitdump_reader r = begin(d);

	assert_true(seam_jitdump_next(&r, rec));
	assert_int_equal(rec->id, SEAM_JITDUMP_DEBUG_INFO);
	return seam_jitdump_lines_make(&rec->debug_info, d->endian);
}

UNIT_TEST(a_name_of_ff_repeats_the_one_before)
{
	struct dump d = every_kind(SEAM_LITTLE);
	struct seam_jitdump_record rec;
	struct seam_jitdump_lines lines = lines_of(&d, &rec);
	struct seam_jitdump_debug_entry e;

	assert_true(seam_jitdump_line(&lines, &e));
	assert_string_equal(e.name, "a.js");
	assert_true(seam_jitdump_line(&lines, &e));
	assert_string_equal(e.name, "a.js");
	assert_int_equal(e.line, 11);
	assert_true(seam_jitdump_line(&lines, &e));
	assert_string_equal(e.name, "bb.js");
	assert_false(seam_jitdump_line(&lines, &e));
	assert_false(lines.is_stepped || lines.is_cut);
}

/* What V8 does: the first bytes of a stale name hold pointers. */
UNIT_TEST(overwritten_names_cost_only_the_names)
{
	static const char *const names[] = {
		"/usr/src/a.js", "/usr/src/a.js", "/usr/src/a.js" };
	struct dump d = { .endian = SEAM_LITTLE };
	struct seam_jitdump_record rec;
	struct seam_jitdump_lines lines;
	struct seam_jitdump_debug_entry e;
	size_t at;

	put_header(&d);
	at = put_debug(&d, 0x1000, 0x1000, names, 3);
	for (size_t i = 0; i < 3; i++)
		memset(d.bytes + at + 32 + i * 30 + 16 + 3, 0, 5);
	lines = lines_of(&d, &rec);
	assert_true(lines.is_stepped);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(seam_jitdump_line(&lines, &e));
		assert_int_equal(e.code_addr, 0x1000 + i);
		assert_int_equal(e.line, 10 + i);
	}
	assert_false(seam_jitdump_line(&lines, &e));
}

UNIT_TEST(promised_entries_that_are_not_there_end_the_walk)
{
	static const char *const names[] = { "a", "bb", "ccc" };
	struct dump d = { .endian = SEAM_LITTLE };
	struct seam_jitdump_record rec;
	struct seam_jitdump_lines lines;
	struct seam_jitdump_debug_entry e;
	size_t at, n = 0;

	put_header(&d);
	at = put_debug(&d, 0x1000, 0x1000, names, 3);
	memset(d.bytes + at + 24, 0xff, 8);
	lines = lines_of(&d, &rec);
	while (seam_jitdump_line(&lines, &e))
		n++;
	assert_int_equal(n, 3);
	assert_true(lines.is_cut);
}

UNIT_TEST(every_record_of_every_real_dump_is_read)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(jit_corpus_dumps); i++) {
		const struct jit_corpus_dump *want = &jit_corpus_dumps[i];
		struct seam_jitdump_reader r;
		struct seam_file file;

		assert_true(jit_corpus_read(want->name, &file));
		count_records(file.bytes.data, file.bytes.size, &r);
		assert_int_equal(r.n_records[0], want->n_loads);
		assert_int_equal(r.n_records[1], 0);
		assert_int_equal(r.n_records[2], want->n_debug);
		assert_int_equal(r.n_records[3], want->n_close);
		assert_int_equal(r.n_records[4], want->n_unwinding);
		assert_int_equal(r.n_records[5], 0);
		assert_int_equal(r.n_notes[SEAM_JITDUMP_BAD_RECORD], 0);
		assert_int_equal(r.tail_bytes, 0);
		assert_int_equal(r.header.pid, want->pid);
		seam_file_close(&file);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
