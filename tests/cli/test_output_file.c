/* SPDX-License-Identifier: MIT */
/* test_output.c - what a command writes arrives, or the cause is told */
#include "cli/output_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Where the last buffer of stdio ends is chance, so every size is tried. */
static void a_full_disk_is_the_cause_at_any_size(void **state)
{
	(void)state;
	for (size_t size = 1; size < 20000; size += 97) {
		struct seam_err err = { 0 };
		struct seam_output output;

		assert_int_equal(seam_output_open(&output, "/dev/full", &err),
				 0);
		for (size_t i = 0; i < size; i++)
			fputc('x', output.file);
		assert_int_equal(seam_output_close(&output, true, &err),
				 -ENOSPC);
	}
}

/* The same where the writer gives up as soon as it sees an error. */
static void a_writer_that_gives_up_leaves_the_cause(void **state)
{
	struct seam_err err = { 0 };
	struct seam_output output;

	(void)state;
	assert_int_equal(seam_output_open(&output, "/dev/full", &err), 0);
	while (!ferror(output.file))
		fwrite("0123456789abcdef", 1, 16, output.file);
	fflush(output.file);
	assert_int_equal(seam_output_close(&output, true, &err), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_is_the_cause_at_any_size),
		cmocka_unit_test(a_writer_that_gives_up_leaves_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
