/* SPDX-License-Identifier: MIT */
/*
 * test_documents.c - the pages of doc/ have the tables and sizes of the code
 *
 * A page has each table as this prints it.  A number that stands in a table as
 * text would then be compared with itself, so sizes also come from records
 * that the code writes, and from its constants.
 * Argument: the root of the source tree.  SEAM_DOC=NAME prints the tables of
 * doc/formats/NAME.md.
 */

#include "base/file.h"
#include "ring/layout.h"
#include "wire/guest/guest_decode.h"
#include "wire/jit/jitdump.h"
#include "wire/jit/perf_map.h"
#include "wire/sysprof/sysprof.h"
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
	size_t size;			/* bytes on the wire, of no text */
	bool varies;
} types[] = {
	[SEAM_WIRE_U8] = { "u8", 1 }, [SEAM_WIRE_U16] = { "u16", 2 },
	[SEAM_WIRE_U32] = { "u32", 4 }, [SEAM_WIRE_U64] = { "u64", 8 },
	[SEAM_WIRE_I32] = { "i32", 4 }, [SEAM_WIRE_I64] = { "i64", 8 },
	[SEAM_WIRE_CSTR] = { "cstr", 1, true },
	[SEAM_WIRE_REST] = { "bytes", 0, true },
	[SEAM_WIRE_ULEB] = { "uleb128", 0, true },
	[SEAM_WIRE_STRING] = { "string", 0, true },
};

/* -- tables ------------------------------------------------------------- */

/* A head and its table, each ended by a form feed. */
static void put_table(FILE *out, const struct seam_record *rec)
{
	size_t offset = 0;
	bool fixed = true;

	fprintf(out, "### %s\n\nSource: %s\n\f", rec->name, rec->spec);
	fputs("| offset | type | field | meaning |\n|---|---|---|---|\n", out);
	for (size_t i = 0; i < rec->n_fields; i++) {
		const struct seam_field *f = &rec->fields[i];

		if (fixed)
			fprintf(out, "| %zu ", offset);
		else
			fputs("| - ", out);
		fprintf(out, "| %s | %s | %s |\n", types[f->type].name,
			f->name, f->doc);
		offset += types[f->type].size;
		fixed = fixed && !types[f->type].varies;
	}
	fputc('\f', out);
}

static void put_xray_pairs(FILE *out)
{
	fputs("| after | may follow |\n|---|---|\n", out);
	for (size_t i = 0; i < seam_xray_n_pairs; i++) {
		const struct seam_xray_pair *pair = &seam_xray_pairs[i];

		if (i == 0 || pair[-1].from != pair->from)
			fprintf(out, "%s| %s | ", i ? " |\n" : "",
				seam_xray_state_name(pair->from));
		else
			fputs(", ", out);
		fputs(seam_xray_state_name(pair->to), out);
		if (pair->last_version == 1)
			fputs(" (1)", out);
		else if (pair->first_version > 1)
			fprintf(out, " (%u-%u)", pair->first_version,
				pair->last_version);
	}
	fputs(" |\n\f", out);
}

static void put_xray(FILE *out)
{
	const struct seam_record *last = NULL;

	put_xray_pairs(out);
	put_table(out, &seam_xray_header_record);
	for (int s = 0; s < SEAM_XRAY_N_STATES; s++) {
		for (unsigned int version = 1; version <= 5; version++) {
			const struct seam_record *table =
				seam_xray_record_table((enum seam_xray_state)s,
						       version);

			if (table && table != last) {
				put_table(out, table);
				last = table;
			}
		}
	}
	put_table(out, &seam_xray_basic_call_record);
	put_table(out, &seam_xray_basic_argument_record);
}

static void put_guest(FILE *out)
{
	static const struct seam_record *const tables[] = {
		&seam_guest_start_table, &seam_guest_head_table,
		&seam_guest_segment_table, &seam_guest_frame_table,
		&seam_guest_symbol_table,
	};

	fputs("| vmstate | name |\n|---|---|\n", out);
	for (unsigned int i = 0; i < SEAM_N_VMSTATES; i++)
		fprintf(out, "| %u | `%s` |\n", i, seam_vmstate_name(i));
	fputs("\f| host_end | key | meaning |\n|---|---|---|\n", out);
	for (unsigned int i = 0; i < SEAM_STACK_N_ENDS; i++)
		fprintf(out, "| %u | `%s` | %s |\n", i, seam_stack_ends[i].key,
			seam_stack_ends[i].text);
	fputs("\f| guest_end | key | meaning |\n|---|---|---|\n", out);
	for (unsigned int i = 0; i < SEAM_GUEST_N_ENDS; i++)
		fprintf(out, "| %u | `%s` | %s |\n", i, seam_guest_end_key(i),
			seam_guest_end_text(i));
	fputc('\f', out);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(tables); i++)
		put_table(out, tables[i]);
}

static void put_sysprof(FILE *out)
{
	put_table(out, &seam_sysprof_lfunc_table);
	put_table(out, &seam_sysprof_cfunc_table);
	put_table(out, &seam_sysprof_trace_table);
	put_table(out, &seam_sysprof_trace_sample_table);
}

static const struct page {
	const char *name;
	void (*put)(FILE *out);
} pages[] = {
	{ "guest", put_guest }, { "sysprof", put_sysprof },
	{ "xray", put_xray },
};

/* Print the tables; or, with @page, each must be in it, after its head. */
static void put_page(void (*put)(FILE *out), const char *page)
{
	char *text = NULL, *save = NULL;
	const char *from = page;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	put(out);
	fclose(out);
	for (char *part = strtok_r(text, "\f", &save); part;
	     part = strtok_r(NULL, "\f", &save)) {
		if (!page) {
			puts(part);
			continue;
		}
		from = strstr(*part == '#' ? page : from, part);
		if (!from)
			fail_msg("not in the page:\n%s", part);
	}
	free(text);
}

UNIT_TEST(a_page_has_the_tables_of_the_code)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(pages); i++) {
		char name[64], *page;

		snprintf(name, sizeof(name), "doc/formats/%s.md",
			 pages[i].name);
		page = read_page(name);
		put_page(pages[i].put, page);
		free(page);
	}
}

/* -- sizes -------------------------------------------------------------- */

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
		fixed = fixed && !types[type_of(type)].varies;
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

UNIT_TEST(a_jitdump_record_is_as_large_as_on_its_page)
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
			      &seam_jitdump_move_table).told,
			 written(&seam_jitdump_move_table));
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

UNIT_TEST(an_xray_record_fits_as_on_its_page)
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

UNIT_TEST(what_pages_say_in_words_is_what_the_code_has)
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
	const char *printed = getenv("SEAM_DOC");

	for (size_t i = 0; printed && i < SEAM_ARRAY_SIZE(pages); i++)
		if (strcmp(printed, pages[i].name) == 0)
			put_page(pages[i].put, NULL);
	root = argc > 1 ? argv[1] : ".";
	return unit_run(NULL, NULL, NULL, NULL);
}
