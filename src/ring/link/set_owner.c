/* SPDX-License-Identifier: MIT */
/* set_owner.c - overwrite the fixed fields of a sample; see set_owner.h */
#include "ring/link/set_owner.h"

/* The fields in question.  Source: perf_event_open(2), PERF_RECORD_SAMPLE */
struct fixed {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/* Of the fixed fields in the record. */
static size_t fixed_at(uint64_t sample_type)
{
	return sizeof(struct seam_ring_header) + sizeof(uint64_t) +
	       (sample_type & PERF_SAMPLE_IP ? 8 : 0);
}

uint64_t seam_ring_sample_time(const void *record, uint64_t sample_type)
{
	struct fixed fixed;

	memcpy(&fixed, (const uint8_t *)record + fixed_at(sample_type),
	       sizeof(fixed));
	return fixed.time_ns;
}

bool seam_ring_set_owner(void *record, const struct seam_ring_header *header,
			 const struct seam_ring_identity *identity)
{
	uint8_t *p = record;
	size_t at = fixed_at(identity->sample_type);
	struct seam_ring_header checked = *header;
	struct fixed fixed;

	if (header->type != PERF_RECORD_SAMPLE ||
	    header->size < at + sizeof(fixed))
		return false;
	checked.misc = PERF_RECORD_MISC_USER;
	memcpy(record, &checked, sizeof(checked));
	memcpy(p + sizeof(*header), &identity->id, sizeof(identity->id));
	memcpy(&fixed, p + at, sizeof(fixed));
	fixed.pid = identity->pid;
	fixed.tid = identity->tid;
	if (fixed.time_ns > identity->max_ns)
		fixed.time_ns = identity->max_ns;
	if (fixed.time_ns < identity->min_ns)
		fixed.time_ns = identity->min_ns;
	memcpy(p + at, &fixed, sizeof(fixed));
	return true;
}
