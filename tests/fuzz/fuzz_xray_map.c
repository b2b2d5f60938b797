/* SPDX-License-Identifier: MIT */
/*
 * fuzz_xray_map.c - any bytes as an instrumentation map, ELF or YAML
 *
 * Oracle: ids rise, each function is found by its id, no sled is lost.
 */

#include "fuzz.h"
#include "symbol/xray/xray_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_xray_map map;

	if (seam_xray_map_read(&map, (struct seam_bytes) { data, size }, NULL))
		return 0;
	for (size_t i = 0; i < map.functions.n; i++) {
		uint32_t id = map.functions.items[i].id;

		if (i && id < map.functions.items[i - 1].id)
			abort();
		if (!seam_xray_map_find(&map, id))
			abort();
	}
	seam_xray_map_fini(&map);
	return 0;
}
