/* SPDX-License-Identifier: MIT */
/*
 * fuzz_perf_map.c - any bytes as a perf map
 *
 * Oracle: what was read, written in the plain form, reads as the same, and
 * every line is an entry, bad or empty.
 */
#include "fuzz.h"
#include "wire/jit/perf_map.h"

#include <inttypes.h>

static void check_again(const struct seam_perf_map_entry *entry)
{
	size_t cap = entry->name.size + 64;
	char *line = malloc(cap);
	int n = snprintf(line, cap, "%" PRIx64 " 0x%" PRIX64 " %.*s\r\n",
			 entry->start_addr, entry->size,
			 (int)entry->name.size, (const char *)entry->name.data);
	struct seam_perf_map_reader reader = seam_perf_map_begin(
		(struct seam_bytes) { (const uint8_t *)line, (size_t)n });
	struct seam_perf_map_entry again;

	if (!seam_perf_map_next(&reader, &again) ||
	    again.start_addr != entry->start_addr ||
	    again.size != entry->size ||
	    again.name.size != entry->name.size ||
	    memcmp(again.name.data, entry->name.data, again.name.size))
		abort();
	free(line);
}

/* The same bytes as an index: each mark moves on, and reads as it is put. */
static void check_times(struct seam_bytes bytes)
{
	struct seam_perf_map_times times = seam_perf_map_times_begin(bytes);
	struct seam_perf_map_mark mark, again, last = { 0 };
	char line[SEAM_PERF_MAP_MARK_BYTES];

	while (seam_perf_map_times_next(&times, &mark)) {
		size_t n = seam_perf_map_mark_put(line, &mark);
		struct seam_perf_map_times one = seam_perf_map_times_begin(
			(struct seam_bytes) { (const uint8_t *)line, n });

		if (mark.offset < last.offset || mark.from_ns < last.from_ns ||
		    mark.from_ns > mark.to_ns ||
		    !seam_perf_map_times_next(&one, &again) ||
		    memcmp(&mark, &again, sizeof(mark)) != 0)
			abort();
		last = mark;
	}
	if (times.pos != bytes.size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_perf_map_reader reader = seam_perf_map_begin(
		(struct seam_bytes) { data, size });
	struct seam_perf_map_entry entry;
	size_t before = 0, n_lines = size && data[size - 1] != '\n';

	for (size_t i = 0; i < size; i++)
		n_lines += data[i] == '\n';
	while (seam_perf_map_next(&reader, &entry)) {
		if (reader.pos <= before)
			abort();
		before = reader.pos;
		if (entry.name.size < SEAM_PERF_MAP_LINE_BYTES - 100)
			check_again(&entry);
	}
	check_times((struct seam_bytes) { data, size });
	if (reader.pos != size || reader.n_entries + reader.n_bad > n_lines)
		abort();
	return 0;
}
