/* SPDX-License-Identifier: MIT */
/* newest_records.c - add at the end, drop at the front; newest_records.h */
#include "record/perf/newest_records.h"

#include <stdlib.h>

#include "wire/perf/perf_record.h"

bool seam_newest_records_add(struct seam_newest_records *r, const void *record,
			     size_t size)
{
	return SEAM_ARRAY_EXTEND(&r->bytes, (const uint8_t *)record, size);
}

const uint8_t *seam_newest_records_drop(struct seam_newest_records *r)
{
	const uint8_t *oldest = r->bytes.items + r->first;
	struct seam_perf_header header;

	if (r->bytes.n - r->first > r->max_bytes) {
		memcpy(&header, oldest, sizeof(header));
		r->first += header.size;
		return oldest;
	}
	/* seldom: each byte is moved once at most */
	if (r->first > r->max_bytes) {
		r->bytes.n -= r->first;
		memmove(r->bytes.items, oldest, r->bytes.n);
		r->first = 0;
	}
	return NULL;
}

void seam_newest_records_fini(struct seam_newest_records *r)
{
	free(r->bytes.items);
	*r = (struct seam_newest_records) { 0 };
}
