/* SPDX-License-Identifier: MIT */
/*
 * fuzz_exports.c - a profile of any bytes, written for other viewers
 *
 * Oracle (export_oracle.h): each file parses in a reader that shares nothing with
 * its writer, its indices are of its tables, and each event's weights add up to
 * the profile's.
 */
#include "../export/export_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	oracle_run(data, size);
	return 0;
}
