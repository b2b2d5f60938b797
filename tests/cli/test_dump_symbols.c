/* SPDX-License-Identifier: MIT */
/*
 * test_dump_symbols.c - each record is printed with its own names
 *
 * Records are told apart by nothing but their place in the file: all have one
 * thread and one time.
 */

#include "../unit.h"
#include "cli/commands/dump_symbols.h"
#include "model/perf/load_perf.h"
#include "perf_bytes.h"

enum { PID = 7 };

/* A sample at @addr that has the value of a counter. */
static void put_value(struct bytes *b, uint64_t value, uint64_t addr)
{
	const uint64_t chain[] = { 2, (uint64_t)PERF_CONTEXT_USER, addr };
	size_t at = begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put_u64(b, TEST_ID_1);
	put_u64(b, addr);
	put_u32(b, PID);
	put_u32(b, PID);
	put_u64(b, 40);
	put_u64(b, 1);
	put_u64(b, 250000);
	put_u64(b, value);
	put_u64(b, TEST_ID_1);
	put(b, chain, sizeof(chain));
	end_record(b, at);
}

/* The second is no sample: its counter did not move.  The fourth is cut. */
static struct bytes a_recording(void)
{
	struct bytes b = { .endian = SEAM_LITTLE }, file;
	size_t damaged;

	put_mmap2(&b, PID, 0x5000, 0x1000, 0, "/bin/one", 20);
	put_mmap2(&b, PID, 0x7000, 0x1000, 0, "/bin/two", 21);
	put_value(&b, 10, 0x7001);
	put_value(&b, 10, 0x5002);
	put_value(&b, 20, 0x5003);
	damaged = begin_record(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_u64(&b, TEST_ID_1);
	end_record(&b, damaged);
	put_value(&b, 30, 0x7004);
	file = make_file(&b);
	make_read_event(&file);
	free(b.data);
	return file;
}

/* What 'seam dump --json --symbols' prints; free() it. */
static char *dump(const struct bytes *made)
{
	struct seam_file file = { .bytes = { made->data, made->size } };
	struct seam_symbols *symbols = seam_symbols_new(
		&(struct seam_symbols_options) { 0 });
	struct seam_profile p;
	struct seam_dump_symbols context = { .profile = &p };
	struct seam_perf_namer namer = { seam_dump_symbols_chain, &context };
	struct seam_perf_data data;
	uint64_t n_damaged = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_perf(&p, &(struct seam_perf_input) {
		.data = &file, .by_record = true,
	}, symbols, NULL), 0);
	assert_int_equal(seam_perf_data_open(&data, file.bytes, NULL), 0);
	assert_int_equal(seam_perf_print(out, &data, data.bytes,
		data.data_begin, data.data_end, SEAM_LINE_JSON, &namer,
		&n_damaged, NULL), 0);
	assert_int_equal(n_damaged, 1);
	fclose(out);
	seam_perf_data_close(&data);
	seam_profile_fini(&p);
	seam_symbols_free(symbols);
	return text;
}

UNIT_TEST(records_that_are_no_samples_take_no_names_of_others)
{
	struct bytes made = a_recording();
	char *text = dump(&made), *at = text;
	const char *const names[] = {
		"[two+0x1]", "[one+0x3]", "[two+0x4]",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		at = strstr(at, "\"symbol\":\"");
		assert_non_null(at);
		at += strlen("\"symbol\":\"");
		assert_memory_equal(at, names[i], strlen(names[i]));
	}
	assert_null(strstr(at, "\"symbol\""));
	free(text);
	free(made.data);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
