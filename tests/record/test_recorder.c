/* SPDX-License-Identifier: MIT */
/* test_recorder.c - a whole recording within a process that goes on */
#include "record/record.h"

#include <dirent.h>

#include "folder.h"
#include "unit.h"

static size_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void record(void)
{
	char output[80], *command[] = { "/bin/true", NULL };
	struct seam_record_options options = {
		.output = output, .command = command,
		.frequency_hz = SEAM_RECORD_FREQUENCY_HZ,
		.ring_bytes = SEAM_RECORD_RING_BYTES,
		.jit_ring_bytes = 1 << 16,
	};
	struct seam_record_result result;
	struct seam_err err = { 0 };

	snprintf(output, sizeof(output), "%s/true.seam", folder);
	assert_int_equal(seam_record(&options, &result, &err), 0);
	assert_true(result.command.has_ended);
	assert_int_equal(result.command.wait_status, 0);
	assert_int_equal(access(output, R_OK | X_OK), 0);
	seam_record_result_fini(&result);
}

/*
 * Memory that is left, LeakSanitizer reports.  What the first recording opened
 * for the process itself, the second uses.
 */
UNIT_TEST(a_recording_leaves_no_memory_and_no_descriptor_behind)
{
	size_t n;

	record();
	n = count_descriptors();
	record();
	assert_int_equal(count_descriptors(), n);
}

UNIT_MAIN(make_folder, drop_folder, NULL, NULL)
