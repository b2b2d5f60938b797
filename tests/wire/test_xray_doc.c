/* SPDX-License-Identifier: MIT */
/*
 * test_xray_doc.c - doc/formats/xray.md has the tables that the code has
 *
 * Argument: the page.  SEAM_XRAY_DOC=print prints the generated parts.
 */

#include "base/file.h"
#include "wire/xray/xray_index.h"
#include "unit.h"
#include "wire_doc.h"

static const char *page_path;

static void document_pairs(FILE *out)
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
	fputs(" |\n\n", out);
}

static void document_fdr(FILE *out)
{
	const struct seam_record *last = NULL;

	document_pairs(out);
	wire_doc(out, &seam_xray_header_record);
	for (int s = 0; s < SEAM_XRAY_N_STATES; s++) {
		for (unsigned int version = 1; version <= 5; version++) {
			const struct seam_record *table =
				seam_xray_record_table((enum seam_xray_state)s,
						       version);

			if (!table || table == last)
				continue;
			fputc('\n', out);
			wire_doc(out, table);
			last = table;
		}
	}
}

static void document_basic(FILE *out)
{
	wire_doc(out, &seam_xray_basic_call_record);
	fputc('\n', out);
	wire_doc(out, &seam_xray_basic_argument_record);
}

/* Every line of the tables of @write is in the page. */
static void assert_documented(void (*write)(FILE *out))
{
	struct seam_file page;
	char *text = NULL, *save = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(seam_file_open(&page, page_path, NULL), 0);
	write(out);
	fclose(out);
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (!memmem(page.bytes.data, page.bytes.size, line,
			    strlen(line)))
			fail_msg("not in the page: %s", line);
	free(text);
	seam_file_close(&page);
}

static void the_page_has_grammar_and_fdr_records(void **state)
{
	assert_documented(document_fdr);
}

static void the_page_has_the_records_of_basic_mode(void **state)
{
	assert_documented(document_basic);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_has_grammar_and_fdr_records),
		cmocka_unit_test(the_page_has_the_records_of_basic_mode),
	};

	if (getenv("SEAM_XRAY_DOC")) {
		document_fdr(stdout);
		document_basic(stdout);
		return 0;
	}
	page_path = argc > 1 ? argv[1] : "doc/formats/xray.md";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
