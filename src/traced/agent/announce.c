/* SPDX-License-Identifier: MIT */
/* announce.c - symbol records into the ring of seam:guest_symtab */
#include "traced/agent/agent.h"

#include <errno.h>

#include "base/clock.h"
#include "traced/agent/handler.h"

/* False: there is no room; the ring has counted it. */
static bool write_symbol(struct seam_agent_thread *t)
{
	struct seam_ring_producer *ring = &t->claims[SEAM_AGENT_SYMTAB].ring;
	uint32_t size = (uint32_t)seam_guest_encode_symbol(t->bytes,
							   &t->symbol);
	/* with its size before it, a multiple of 8 */
	uint32_t raw_bytes = size + (size % 8 == 4 ? 0 : 4);
	const struct seam_agent_fixed fixed = {
		.time_ns = seam_clock_ns(), .period = 1,
	};
	struct seam_ring_writer w;

	memset(t->bytes + size, 0, raw_bytes - size);
	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0,
			    sizeof(fixed) + sizeof(raw_bytes) + raw_bytes))
		return false;
	seam_ring_put(&w, &fixed, sizeof(fixed));
	seam_ring_put(&w, &raw_bytes, sizeof(raw_bytes));
	seam_ring_put(&w, t->bytes, raw_bytes);
	seam_ring_end(&w);
	return true;
}

void seam_agent_announce(struct seam_agent_thread *t)
{
	const struct seam_guest_sample *sample = &t->sample;

	for (size_t i = 0; i < sample->n_fresh; i++) {
		int r = seam_guest_describe(sample->fresh[i], &t->symbol);

		t->symbol.adapter = sample->head.adapter;
		t->symbol.table = seam_agent.table;
		if (r == -EAGAIN || (r == 0 && !write_symbol(t)))
			seam_guest_announce_again(sample->fresh[i]);
	}
}
