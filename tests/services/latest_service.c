/* SPDX-License-Identifier: MIT */
/*
 * latest_service.c - a service whose AUX buffers keep the newest data only
 *
 * The AUX buffer overwrites itself: a program that runs for days costs the
 * recorder nothing until it ends.  The service has no event; it prints what
 * was left.
 */
#include "record/services/service.h"

#include "services.h"

struct latest {
	uint64_t first, last, n;	/* of the records */
	uint64_t first_aux, last_aux, n_aux;	/* of the AUX data */
};

static int begin(struct seam_service_stream *stream)
{
	static struct latest latest;	/* there is one program */

	latest = (struct latest) { 0 };
	stream->state = &latest;
	return 0;
}

static bool take(struct seam_service_stream *stream, uint8_t *record,
		 size_t size)
{
	struct latest *latest = stream->state;
	uint64_t value;

	if (size != sizeof(struct seam_ring_header) + sizeof(value))
		return false;
	memcpy(&value, record + sizeof(struct seam_ring_header), sizeof(value));
	if (latest->n++ == 0)
		latest->first = value;
	latest->last = value;
	return false;			/* nothing for "data" */
}

static void take_aux(struct seam_service_stream *stream, const uint8_t *bytes,
		     size_t size)
{
	struct latest *latest = stream->state;
	uint64_t value;

	for (size_t at = 0; at + sizeof(value) <= size; at += sizeof(value)) {
		memcpy(&value, bytes + at, sizeof(value));
		if (latest->n_aux++ == 0)
			latest->first_aux = value;
		latest->last_aux = value;
	}
}

static void end(struct seam_service_stream *stream,
		const struct seam_owner_counts *counts)
{
	const struct latest *latest = stream->state;

	printf("latest begun %ju records %ju from %ju to %ju aux %ju from %ju "
	       "to %ju\n", (uintmax_t)counts->n_begun, (uintmax_t)latest->n,
	       (uintmax_t)latest->first, (uintmax_t)latest->last,
	       (uintmax_t)latest->n_aux, (uintmax_t)latest->first_aux,
	       (uintmax_t)latest->last_aux);
}

/* @free_running: of the AUX buffer; else it is drained, as its records are. */
void latest_service_init(struct seam_service *service, bool free_running)
{
	*service = (struct seam_service) {
		.link = {
			.name = free_running ? "latest" : "drained",
			.n_free = 1,
			.geometry = {
				/* drained: all that the program writes */
				.n_slots = 4,
				.data_bytes = free_running ? 4096 : 16384,
				.aux_bytes = 4096,
				.aux_free_running = free_running,
			},
		},
		.aux_unit = sizeof(uint64_t),
		.begin = begin, .take = take, .take_aux = take_aux,
		.end = end,
	};
}
