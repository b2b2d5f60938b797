/* SPDX-License-Identifier: MIT */
/*
 * test_documents.c - sizes in doc/ are those that the code has
 *
 * Other tests demand that a page has the tables which the code prints; a
 * number that stands in such a table as text is then compared with itself.
 * Here sizes come from records that the code writes and from its constants.
 * Argument: the root of the source tree.
 */
#include <stdio.h>

#include "base/file.h"
#include "ring/layout.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"
#include "wire/xray/xray_fdr.h"
#include "wire/xray/xray_index.h"
#include "unit.h"

static const char *root;

static char *read_page(const char *name)
{
	struct seam_file page;
	char path[4096], *text;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(seam_file_open(&page, path, NULL), 0);
	text = strndup((const char *)page.bytes.data, page.bytes.size);
	assert_non_null(text);
	seam_file_close(&page);
	return text;
}

static const struct {
	const char *name;
	size_t size;
} types[] = {
	[SEAM_WIRE_U8] = { "u8", 1 }, [SEAM_WIRE_U16] = { "u16", 2 },
	[SEAM_WIRE_U32] = { "u32", 4 }, [SEAM_WIRE_U64] = { "u64", 8 },
	[SEAM_WIRE_I32] = { "i32", 4 }, [SEAM_WIRE_I64] = { "i64", 8 },
	[SEAM_WIRE_CSTR] = { "cstr", 1 }, [SEAM_WIRE_REST] = { "bytes", 0 },
};

static size_t type_of(const char *name)
{
	size_t i = 0;

	while (i < SEAM_ARRAY_SIZE(types) && strcmp(types[i].name, name))
		i++;
	assert_true(i < SEAM_ARRAY_SIZE(types));
	return i;
}

struct table {
	size_t size;			/* of a record whose texts are empty */
	unsigned long told;		/* what total_size is said to be; 0 */
	size_t n;
};

/*
 * The table that is next in @text; each row begins where the last ends, and is
 * a field of @record, unless that is NULL.
 */
static struct table walk(const char *text, const struct seam_record *record)
{
	struct table table = { 0 };
	char offset[16], type[16], field[64], meaning[32];
	bool fixed = true;

	text = strstr(text, "|---|---|---|---|\n");
	assert_non_null(text);
	for (text = strchr(text, '\n') + 1; *text == '|';
	     text = strchr(text, '\n') + 1) {
		assert_int_equal(sscanf(text, "| %15s | %15s | %63s | %31[^|\n]",
					offset, type, field, meaning), 4);
		if (fixed)
			assert_int_equal(strtoul(offset, NULL, 10), table.size);
		else
			assert_string_equal(offset, "-");
		if (record) {
			assert_true(table.n < record->n_fields);
			assert_string_equal(record->fields[table.n].name, field);
			assert_int_equal(record->fields[table.n].type,
					 type_of(type));
		}
		table.size += types[type_of(type)].size;
		fixed = fixed && strcmp(type, "cstr") && strcmp(type, "bytes");
		if (strcmp(field, "total_size") == 0)
			table.told = strtoul(meaning, NULL, 10);
		table.n++;
	}
	return table;
}

/* The bytes of a record of zeroes and empty texts, as the code writes it. */
static size_t written(const struct seam_record *record)
{
	uint64_t zeroes[32] = { 0 };
	uint8_t buf[256];

	for (size_t i = 0; i < record->n_fields; i++)
		if (record->fields[i].type == SEAM_WIRE_CSTR)
			memcpy((uint8_t *)zeroes + record->fields[i].offset,
			       &(const char *){ "" }, sizeof(char *));
	return seam_wire_write(record, zeroes, SEAM_LITTLE, buf, sizeof(buf));
}

static void a_jitdump_record_is_as_large_as_on_its_page(void **state)
{
	static const struct seam_record *const tables[] = {
		&seam_jitdump_header_table, &seam_jitdump_prefix_table,
		&seam_jitdump_load_table, &seam_jitdump_move_table,
		&seam_jitdump_debug_info_table,
		&seam_jitdump_debug_entry_table,
		&seam_jitdump_unwinding_info_table,
	};
	char *page = read_page("doc/formats/jitdump.md");

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(tables); i++) {
		char head[64];
		const char *at;
		struct table table;

		snprintf(head, sizeof(head), "\n### %s\n", tables[i]->name);
		at = strstr(page, head);
		assert_non_null(at);
		table = walk(at, tables[i]);
		assert_int_equal(table.n, tables[i]->n_fields);
		assert_int_equal(table.size, written(tables[i]));
		if (table.told)
			assert_int_equal(table.told, table.size);
	}
	/* the one whose size is a number: */
	assert_int_equal(walk(strstr(page, "\n### JIT_CODE_MOVE\n"),
			      &seam_jitdump_move_table).told, written(&seam_jitdump_move_table));
	free(page);
}

/* Fields of a metadata record come after its first byte. */
static size_t most_of(const char *name, bool is_basic)
{
	return is_basic ? SEAM_XRAY_BASIC_BYTES :
	       strcmp(name, "Header") == 0 ? SEAM_XRAY_HEADER_BYTES :
	       strcmp(name, "Function") == 0 ? SEAM_XRAY_FUNCTION_BYTES :
	       SEAM_XRAY_METADATA_BYTES - 1;
}

static void an_xray_record_fits_as_on_its_page(void **state)
{
	char *page = read_page("doc/formats/xray.md");
	const char *basic = strstr(page, "\n## Basic mode\n");
	const char *at = page;
	size_t n = 0;

	assert_non_null(basic);
	for (; (at = strstr(at, "\n### ")); n++) {
		char name[64];
		struct table table;
		size_t most;

		at += strlen("\n### ");
		assert_int_equal(sscanf(at, "%63s", name), 1);
		table = walk(at, NULL);
		most = most_of(name, at > basic);
		assert_true(table.size <= most);
		if (strcmp(name, "Header") == 0 ||
		    (strcmp(name, "Function") == 0 && at < basic))
			assert_int_equal(table.size, most);
	}
	assert_true(n >= 15);
	free(page);
}

static void assert_says(const char *page, const char *fmt, ...)
{
	char *text = read_page(page), line[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (!strstr(text, line))
		fail_msg("%s does not say: %s", page, line);
	free(text);
}

static void what_pages_say_in_words_is_what_the_code_has(void **state)
{
	assert_says("doc/formats/xray.md", "header      = %d bytes,",
		    SEAM_XRAY_HEADER_BYTES);
	assert_says("doc/formats/xray.md", "function    = %d bytes:",
		    SEAM_XRAY_FUNCTION_BYTES);
	assert_says("doc/formats/xray.md",
		    "metadata    = %d bytes: bit 0 = 1, record_kind 7 bits; "
		    "%d bytes of fields", SEAM_XRAY_METADATA_BYTES,
		    SEAM_XRAY_METADATA_BYTES - 1);
	assert_says("doc/formats/xray.md",
		    "basic       = { record [ argument ] }          %d bytes "
		    "each", SEAM_XRAY_BASIC_BYTES);
	assert_says("doc/formats/jitdump.md", "a `total_size` under %d",
		    SEAM_JITDUMP_PREFIX_BYTES);
	assert_says("doc/formats/jitdump.md", "Lines over\n%d KiB",
		    SEAM_PERF_MAP_LINE_BYTES >> 10);
	assert_says("doc/formats/jitdump.md", "a group over %d MiB",
		    SEAM_JIT_MAX_GROUP >> 20);
	assert_says("doc/design/ring.md", "with our %zu bytes at %zu",
		    sizeof(struct seam_ring_state),
		    offsetof(struct seam_ring_control, program));
	assert_says("doc/design/ring.md", "size = %zu, %zu, ... %d",
		    sizeof(struct seam_ring_header),
		    2 * sizeof(struct seam_ring_header),
		    SEAM_RING_MAX_RECORD);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jitdump_record_is_as_large_as_on_its_page),
		cmocka_unit_test(an_xray_record_fits_as_on_its_page),
		cmocka_unit_test(what_pages_say_in_words_is_what_the_code_has),
	};

	root = argc > 1 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
