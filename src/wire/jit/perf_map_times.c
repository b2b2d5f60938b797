/* SPDX-License-Identifier: MIT */
/* perf_map_times.c - lines of "OFFSET FROM TO"; see perf_map_times.h */
#include "wire/jit/perf_map_times.h"

#include <inttypes.h>

#include "base/text.h"

/* A decimal number and the blank or end after it. */
static bool take_number(const char **at, const char *end, uint64_t *value)
{
	const char *p = seam_text_number(*at, end, 10, value);

	if (!p || (p < end && *p != ' '))
		return false;
	*at = p + (p < end);
	return true;
}

static bool read_mark(const char *at, const char *end,
		      struct seam_perf_map_mark *mark)
{
	return take_number(&at, end, &mark->offset) &&
	       take_number(&at, end, &mark->from_ns) &&
	       take_number(&at, end, &mark->to_ns) && at == end &&
	       mark->from_ns <= mark->to_ns;
}

bool seam_perf_map_times_next(struct seam_perf_map_times *times,
			      struct seam_perf_map_mark *mark)
{
	while (times->pos < times->bytes.size) {
		const char *start = (const char *)times->bytes.data +
				    times->pos;
		const char *end = memchr(start, '\n',
					 times->bytes.size - times->pos);

		/* A recorder that was killed may leave half a line. */
		if (!end)
			break;
		times->pos += (size_t)(end - start) + 1;
		if (end == start || *start == '#')
			continue;
		if (read_mark(start, end, mark) &&
		    mark->offset >= times->last.offset &&
		    mark->to_ns >= times->last.to_ns) {
			if (mark->from_ns < times->last.from_ns)
				mark->from_ns = times->last.from_ns;
			times->last = *mark;
			return true;
		}
		times->n_bad++;
	}
	times->pos = times->bytes.size;
	return false;
}

size_t seam_perf_map_mark_put(char *to, const struct seam_perf_map_mark *mark)
{
	int n = snprintf(to, SEAM_PERF_MAP_MARK_BYTES,
			 "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", mark->offset,
			 mark->from_ns, mark->to_ns);

	return n > 0 ? (size_t)n : 0;
}
