/* SPDX-License-Identifier: MIT */
/*
 * test_xray_doc.c - doc/formats/xray.md has the tables that the code has
 *
 * Argument: the page.  SEAM_XRAY_DOC=print prints the generated parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "wire/xray/xray_basic.h"

static const char *page_path;

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
	(void)state;
	assert_documented(seam_xray_fdr_doc);
}

static void the_page_has_the_records_of_basic_mode(void **state)
{
	(void)state;
	assert_documented(seam_xray_basic_doc);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_has_grammar_and_fdr_records),
		cmocka_unit_test(the_page_has_the_records_of_basic_mode),
	};

	if (getenv("SEAM_XRAY_DOC")) {
		seam_xray_fdr_doc(stdout);
		seam_xray_basic_doc(stdout);
		return 0;
	}
	page_path = argc > 1 ? argv[1] : "doc/formats/xray.md";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
