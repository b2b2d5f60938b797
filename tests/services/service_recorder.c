/* SPDX-License-Identifier: MIT */
/*
 * service_recorder.c - 'seam record' with the made-up services besides
 *
 *	service_recorder OUTPUT RING_BYTES COMMAND...
 *
 * Prints what the services counted.
 */
#include <stdlib.h>

#include "record/record.h"
#include "services.h"

int main(int argc, char **argv)
{
	struct seam_service all[SEAM_RECORD_MORE_SERVICES];
	struct seam_record_options options = {
		.output = argc > 3 ? argv[1] : NULL,
		.frequency_hz = SEAM_RECORD_FREQUENCY_HZ,
		.ring_bytes = SEAM_RECORD_RING_BYTES,
		.jit_ring_bytes = 1 << 16,
		.command = argv + 3,
		.services = { &all[0], &all[1], &all[2] },
	};
	struct seam_record_result result;
	struct seam_err err = { 0 };

	if (argc < 4)
		return 2;
	counter_service_init(&all[0], strtoul(argv[2], NULL, 10));
	latest_service_init(&all[1], true);
	latest_service_init(&all[2], false);
	if (seam_record(&options, &result, &err)) {
		seam_err_print(stderr, "service_recorder", &err);
		return 1;
	}
	printf("without a ring %ju\n", (uintmax_t)all[0].n_without_ring);
	printf("samples %ju lost %ju bad %ju unowned %ju\n",
	       (uintmax_t)all[0].n_samples, (uintmax_t)all[0].n_lost,
	       (uintmax_t)all[0].n_bad, (uintmax_t)all[0].n_unowned);
	seam_record_result_fini(&result);
	return 0;
}
