/* SPDX-License-Identifier: MIT */
/*
 * fuzz_fdr_sleds.c - any bytes as code and lists of sleds
 *
 * Oracle: see fdr/sled_image.h.  Lists of gcc are read only: patching makes
 * stubs, which are never freed.
 */
#include "fuzz.h"
#include "fdr/sled_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sled_image image;

	if (!image.memory)
		image_init(&image);
	image_check(&image, data, size, false);
	return 0;
}
