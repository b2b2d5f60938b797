/* SPDX-License-Identifier: MIT */
/* test_call_names.c - numbers of several programs, and their names */
#include "folder.h"
#include "model/xray/call_names.h"
#include "unit.h"
#include "wire/xray_made.h"

/* A log of process @pid, and beside it the map of functions 1 to @n. */
static void put_program(char path[128], int32_t pid, char letter, int n)
{
	struct made m = { 0 };
	char beside[128];
	FILE *out;

	made_header(&m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	made_block(&m, pid, pid, 10, 0, 1000);
	made_call(&m, SEAM_XRAY_ENTRY, 1, 100);
	made_call(&m, SEAM_XRAY_EXIT, 1, 100);
	made_end(&m, 0, 0);
	snprintf(path, 128, "%s/%d.xray", folder, pid);
	out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(m.data, m.size, 1, out), 1);
	assert_int_equal(fclose(out), 0);
	made_free(&m);
	snprintf(beside, sizeof(beside), "%s/%d.yaml", folder, pid);
	out = fopen(beside, "w");
	assert_non_null(out);
	fprintf(out, "---\n");
	for (int i = 1; i <= n; i++)
		fprintf(out, "- { id: %d, address: 0x%d000, function: "
			"0x%d000, kind: function-enter, always-instrument: "
			"false, version: 2, function-name: '%c%d' }\n", i, i,
			i, letter, i);
	fprintf(out, "...\n");
	assert_int_equal(fclose(out), 0);
}

UNIT_TEST(each_program_keeps_its_numbers_and_names)
{
	struct seam_symbols *symbols =
		seam_symbols_new(&(struct seam_symbols_options) { 0 });
	char paths[2][128], buf[SEAM_CALL_NAME], name[16];
	const char *const both[] = { paths[0], paths[1] };
	struct seam_trace trace;
	struct seam_xray_map names;

	put_program(paths[0], 7, 'a', 2);
	put_program(paths[1], 8, 'b', 3);
	assert_int_equal(seam_trace_open(&trace, both, 2, NULL), 0);
	assert_int_equal(seam_log_names_open(&names, &trace, NULL, symbols,
					     NULL, NULL), 0);
	assert_int_equal(names.functions.n, 5);
	for (uint32_t log = 0; log < 2; log++) {
		const struct seam_trace_ids *ids = &trace.logs.items[log].ids;

		assert_int_equal(ids->n, 3 + log);
		for (uint32_t id = 1; id < ids->n; id++) {
			assert_int_equal(seam_call_id(&names, ids->first + id),
					 id);
			snprintf(name, sizeof(name), "%c%u", "ab"[log], id);
			assert_string_equal(seam_call_name(&names,
					    ids->first + id, buf), name);
		}
		/* what neither map has */
		assert_int_equal(ids->others, names.others);
		assert_string_equal(seam_call_name(&names, ids->others + 9,
						   buf), "#9");
	}
	seam_xray_map_fini(&names);
	seam_trace_close(&trace);
	seam_symbols_free(symbols);
}

UNIT_MAIN(make_folder, drop_folder, NULL, NULL)
