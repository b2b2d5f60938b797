/* SPDX-License-Identifier: MIT */
/* test_recorder.c - a whole recording within a process that goes on */
#include "record/record.h"

#include "folder.h"
#include "unit.h"

/* What is left, LeakSanitizer reports. */
UNIT_TEST(a_recording_leaves_no_memory_behind)
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
	assert_true(result.command_ended);
	assert_int_equal(result.wait_status, 0);
	assert_int_equal(access(output, R_OK | X_OK), 0);
	seam_record_result_fini(&result);
}

UNIT_MAIN(make_folder, drop_folder, NULL, NULL)
