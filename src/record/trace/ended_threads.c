/* SPDX-License-Identifier: MIT */
/* ended_threads.c - a queue with a limit of bytes; see ended_threads.h */
#include "record/trace/ended_threads.h"

#include <stdlib.h>

/* What a thread counts for: its calls, and what is needed to keep them. */
static uint64_t cost(const struct seam_ended_thread *thread)
{
	return thread->size + sizeof(*thread);
}

static void drop_first(struct seam_ended_threads *ended)
{
	struct seam_ended_thread *first = &ended->threads.items[ended->first];

	ended->n_bytes -= cost(first);
	ended->n_dropped++;
	free(first->bytes);
	ended->first++;
}

/* Half of the items have been dropped: move the others to the front. */
static void move_up(struct seam_ended_threads *ended)
{
	size_t n = seam_ended_threads_n(ended);

	if (ended->first <= n)
		return;
	memmove(ended->threads.items, ended->threads.items + ended->first,
		n * sizeof(*ended->threads.items));
	ended->threads.n = n;
	ended->first = 0;
}

void seam_ended_threads_add(struct seam_ended_threads *ended,
			    const struct seam_ended_thread *thread,
			    const uint8_t *bytes)
{
	struct seam_ended_thread kept = *thread;

	if (!kept.size)
		return;
	while (seam_ended_threads_n(ended) > 0 &&
	       ended->n_bytes + cost(&kept) > ended->max_bytes)
		drop_first(ended);
	move_up(ended);
	kept.bytes = cost(&kept) > ended->max_bytes ? NULL : malloc(kept.size);
	if (!kept.bytes || !SEAM_ARRAY_ADD(&ended->threads, kept)) {
		free(kept.bytes);
		ended->n_dropped++;
		return;
	}
	memcpy(kept.bytes, bytes, kept.size);
	ended->n_bytes += cost(&kept);
}

void seam_ended_threads_fini(struct seam_ended_threads *ended)
{
	for (size_t i = 0; i < seam_ended_threads_n(ended); i++)
		free(ended->threads.items[ended->first + i].bytes);
	free(ended->threads.items);
	*ended = (struct seam_ended_threads) { 0 };
}
