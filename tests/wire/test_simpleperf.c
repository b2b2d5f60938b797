/* SPDX-License-Identifier: MIT */
/* test_simpleperf.c - the promises of simpleperf.h */
#include "wire/perf/simpleperf.h"

#include "../simpleperf_bytes.h"
#include "unit.h"

static const struct made_symbol symbols[] = {
	{ 0x1000, 0x20, "first" },
	{ UINT64_C(0xffffff8008080000), 0x300, "_Z6secondv" },
	{ 0x1040, 0, "no_size" },
};

static struct bytes make(bool is_proto, enum seam_endian endian)
{
	struct bytes b = { .endian = endian };

	put_entry(&b, is_proto, "/system/lib64/libc.so", SEAM_SIMPLEPERF_ELF,
		  0x1000, 0x800, symbols, 3);
	put_entry(&b, is_proto, "[kernel.kallsyms]", SEAM_SIMPLEPERF_KERNEL, 0,
		  UINT64_MAX, NULL, 0);
	put_entry(&b, is_proto, "/system/base.vdex", SEAM_SIMPLEPERF_DEX, 0,
		  UINT64_MAX, symbols, 1);
	return b;
}

static bool is_text(struct seam_bytes bytes, const char *text)
{
	return bytes.size == strlen(text) &&
	       memcmp(bytes.data, text, bytes.size) == 0;
}

static void check_symbols(struct seam_simpleperf_file *file, size_t n)
{
	struct seam_simpleperf_symbol s;

	for (size_t i = 0; i < n; i++) {
		assert_true(seam_simpleperf_symbol(file, &s));
		assert_int_equal(s.vaddr, symbols[i].vaddr);
		assert_int_equal(s.size, symbols[i].size);
		assert_true(is_text(s.name, symbols[i].name));
	}
	assert_false(seam_simpleperf_symbol(file, &s));
}

UNIT_TEST(files_and_symbols_read_in_both_forms)
{
	for (int i = 0; i < 4; i++) {
		bool is_proto = i & 1;
		struct bytes b = make(is_proto, i & 2 ? SEAM_BIG :
				      SEAM_LITTLE);
		struct seam_simpleperf_reader r = seam_simpleperf_begin(
			(struct seam_bytes) { b.data, b.size }, b.endian,
			is_proto);
		struct seam_simpleperf_file f;

		assert_true(seam_simpleperf_next(&r, &f));
		assert_true(is_text(f.path, "/system/lib64/libc.so"));
		assert_int_equal(f.type, SEAM_SIMPLEPERF_ELF);
		assert_int_equal(f.min_vaddr, 0x1000);
		assert_int_equal(f.offset, 0x800);
		check_symbols(&f, 3);
		assert_true(seam_simpleperf_next(&r, &f));
		assert_int_equal(f.type, SEAM_SIMPLEPERF_KERNEL);
		assert_true(f.offset == UINT64_MAX);
		check_symbols(&f, 0);
		assert_true(seam_simpleperf_next(&r, &f));
		assert_true(is_text(f.path, "/system/base.vdex"));
		check_symbols(&f, 1);
		assert_false(seam_simpleperf_next(&r, &f));
		free(b.data);
	}
}

/* Reads all of it; what is returned lies in @bytes. */
static size_t read_all(struct seam_bytes bytes, bool is_proto)
{
	struct seam_simpleperf_reader r = seam_simpleperf_begin(bytes,
						SEAM_LITTLE, is_proto);
	struct seam_simpleperf_symbol s;
	struct seam_simpleperf_file f;
	size_t n = 0;

	while (seam_simpleperf_next(&r, &f)) {
		n++;
		while (seam_simpleperf_symbol(&f, &s))
			assert_true(!s.name.size ||
				    (s.name.data >= bytes.data &&
				     s.name.data + s.name.size <=
				     bytes.data + bytes.size));
	}
	return n;
}

UNIT_TEST(a_cut_costs_only_the_entries_that_are_cut)
{
	for (int form = 0; form < 2; form++) {
		struct bytes b = make(form, SEAM_LITTLE);
		size_t last = 0;

		for (size_t size = 0; size <= b.size; size++) {
			struct seam_bytes cut = exact(b.data, size);
			size_t n = read_all(cut, form);

			assert_true(n >= last && n <= 3);
			last = n;
			free_exact(cut);
		}
		assert_int_equal(last, 3);
		free(b.data);
	}
}

UNIT_TEST(every_flipped_byte_ends)
{
	for (int form = 0; form < 2; form++) {
		struct bytes b = make(form, SEAM_LITTLE);

		for (size_t i = 0; i < 8 * b.size; i++) {
			struct seam_bytes copy = exact(b.data, b.size);

			((uint8_t *)(uintptr_t)copy.data)[i / 8] ^=
				(uint8_t)(1 << i % 8);
			assert_true(read_all(copy, form) <= b.size);
			free_exact(copy);
		}
		free(b.data);
	}
}

/* In the order of the events; a tracepoint's id is that of its machine. */
UNIT_TEST(a_tracepoint_is_called_as_meta_info_says)
{
	static const char *const infos[][2] = {
		{ "cpu-clock,1,0\nsched:sched_switch,2,203\n",
		  "sched:sched_switch" },
		{ "cpu-clock,1,0\nsched:sched_switch,2,203",
		  "sched:sched_switch" },
		{ "x\na,b:c,2,203", "a,b:c" },
		{ "cpu-clock,1,0\nsched:sched_switch,2,20", "tracepoint:203" },
		{ "sched:sched_switch,2,203", "tracepoint:203" },
		{ "\n,2,203", "tracepoint:203" }, { "", "tracepoint:203" },
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(infos); i++) {
		struct bytes b = { .endian = SEAM_LITTLE }, file;
		struct seam_perf_data d;
		size_t at = begin_record(&b, SEAM_PERF_HEADER_FEATURE, 0);

		put_u64(&b, SEAM_SIMPLEPERF_META_INFO);
		put(&b, "clockid\0perf\0event_type_info", 29);
		put(&b, infos[i][0], strlen(infos[i][0]) + 1);
		put_n(&b, 0, -b.size & 7);
		end_record(&b, at);
		file = make_pipe(&b);
		/* the second event, and without its EVENT_UPDATE */
		set_n(&file, 16 + 144 + 8, PERF_TYPE_TRACEPOINT, 4);
		set_n(&file, 16 + 144 + 16, 203, 8);
		set_n(&file, 16 + 2 * 144, SEAM_PERF_FINISHED_ROUND, 4);
		set_n(&file, 16 + 2 * 144 + 40, SEAM_PERF_FINISHED_ROUND, 4);
		assert_int_equal(seam_perf_data_open(&d, (struct seam_bytes) {
			file.data, file.size }, NULL), 0);
		assert_string_equal(d.events.items[1].name, infos[i][1]);
		seam_perf_data_close(&d);
		free(file.data);
		free(b.data);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
