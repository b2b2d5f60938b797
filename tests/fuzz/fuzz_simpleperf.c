/* SPDX-License-Identifier: MIT */
/*
 * fuzz_simpleperf.c - any bytes as a FILE or FILE2 section of simpleperf
 *
 * The first byte picks the form.  Oracles: what is returned lies in the
 * input, and no more entries and symbols come than bytes.
 */
#include <stdlib.h>

#include "wire/perf/simpleperf.h"

static void check_inside(struct seam_bytes part, struct seam_bytes all)
{
	if (part.size && (part.data < all.data ||
			  part.data + part.size > all.data + all.size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct seam_bytes all = { input + 1, size - 1 };
	struct seam_simpleperf_reader reader;
	struct seam_simpleperf_symbol symbol;
	struct seam_simpleperf_file file;
	size_t n = 0;

	if (size == 0)
		return 0;
	reader = seam_simpleperf_begin(all, input[0] & 2 ? SEAM_BIG :
				       SEAM_LITTLE, input[0] & 1);
	while (seam_simpleperf_next(&reader, &file)) {
		check_inside(file.path, all);
		while (seam_simpleperf_symbol(&file, &symbol)) {
			check_inside(symbol.name, all);
			n++;
		}
		if (++n > size)
			abort();
	}
	return 0;
}
