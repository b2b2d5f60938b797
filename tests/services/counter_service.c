/* SPDX-License-Identifier: MIT */
/*
 * counter_service.c - a service of the recorder, to copy from
 *
 * Programs count, one ring a thread, and each number is a sample of the event
 * "seam:counter" in "data".  The program's side is counter_program.c.
 */
#include "record/services/service.h"

#include <errno.h>
#include <stdlib.h>

#include "counter.h"
#include "services.h"

/* What is known of one ring. */
struct counter {
	uint64_t n_taken;
};

static int begin(struct seam_service_stream *stream)
{
	stream->state = calloc(1, sizeof(struct counter));
	return stream->state ? 0 : -ENOMEM;
}

/*
 * Id, pid, tid and time are the recorder's already.  The rest is the program's,
 * and a reader of "data" must be able to rely on its sizes.
 */
static bool take(struct seam_service_stream *stream, uint8_t *record,
		 size_t size)
{
	struct counter *counter = stream->state;
	struct counter_sample sample;

	if (size != sizeof(struct seam_ring_header) + sizeof(sample))
		return false;
	memcpy(&sample, record + sizeof(struct seam_ring_header),
	       sizeof(sample));
	if (sample.raw_bytes != COUNTER_RAW_BYTES)
		return false;
	counter->n_taken++;
	return true;
}

static void end(struct seam_service_stream *stream,
		const struct seam_owner_counts *counts)
{
	struct counter *counter = stream->state;

	printf("counter pid %u tid %u begun %ju taken %ju\n", stream->pid,
	       stream->tid, (uintmax_t)counts->n_begun,
	       (uintmax_t)counter->n_taken);
	free(counter);
}

void counter_service_init(struct seam_service *service, size_t ring_bytes)
{
	*service = (struct seam_service) {
		.link = {
			.name = COUNTER_SERVICE,
			.n_free = 4,
			.geometry = {
				.n_slots = 64, .data_bytes = ring_bytes,
			},
		},
		.event = "seam:counter",
		.sample_type = COUNTER_SAMPLE_TYPE,
		.begin = begin, .take = take, .end = end,
	};
}
