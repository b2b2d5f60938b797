/* SPDX-License-Identifier: MIT */
/* set_owner.c - see set_owner.h */
#include "ring/link/set_owner.h"

/* Bytes of payload in front of the trailer; SIZE_MAX: not for programs. */
static size_t payload_bytes(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_LOST:		/* id, lost */
		return 16;
	case PERF_RECORD_LOST_SAMPLES:	/* lost */
		return 8;
	case PERF_RECORD_AUX:		/* offset, size, flags */
		return 24;
	}
	return SIZE_MAX;
}

bool seam_ring_stamp(void *record, const struct seam_ring_header *header,
		     const struct seam_ring_stamp *stamp)
{
	uint32_t who[2] = { stamp->pid, stamp->tid };
	size_t at = stamp->sample_at, payload;

	if (header->type != PERF_RECORD_SAMPLE) {
		payload = payload_bytes(header->type);
		if (payload == SIZE_MAX || header->size != sizeof(*header) +
					   payload + stamp->trailer_bytes)
			return false;
		if (stamp->trailer_bytes == 0)
			return true;
		at = sizeof(*header) + payload + stamp->trailer_at;
	} else if (at == 0) {
		return true;
	}
	if (at + sizeof(who) > header->size)
		return false;
	memcpy((uint8_t *)record + at, who, sizeof(who));
	return true;
}
