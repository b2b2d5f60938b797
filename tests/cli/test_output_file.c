/* SPDX-License-Identifier: MIT */
/* test_output_file.c - what a command writes arrives, or the cause is told */
#include "cli/output_file.h"

#include "../unit.h"

/* So many bytes; 0: as many as the file takes. */
static size_t n_bytes;

static int write_bytes(const struct seam_export *export, struct seam_err *err)
{
	for (size_t i = 0; n_bytes ? i < n_bytes : !ferror(export->out); i++)
		fputc('x', export->out);
	return 0;
}

/*
 * Where the last buffer of stdio ends is chance, so every size is tried; 0 is a
 * writer that gives up as soon as it sees an error.
 */
UNIT_TEST(a_full_disk_is_the_cause_at_any_size)
{
	const struct seam_exporter bytes = { .write = write_bytes };
	struct seam_export export = { 0 };

	for (n_bytes = 0; n_bytes < 20000; n_bytes += 97) {
		struct seam_err err = { 0 };

		assert_int_equal(seam_export_file("/dev/full", &bytes, &export,
						  &err), -ENOSPC);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
