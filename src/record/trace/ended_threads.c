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

void seam_ended_threads_add(struct seam_ended_threads *ended, uint32_t pid,
			    uint32_t tid, const uint8_t *bytes, size_t size)
{
	struct seam_ended_thread thread = {
		.pid = pid, .tid = tid, .size = size,
	};

	if (!size)
		return;
	while (seam_ended_threads_n(ended) > 0 &&
	       ended->n_bytes + cost(&thread) > ended->max_bytes)
		drop_first(ended);
	move_up(ended);
	if (cost(&thread) <= ended->max_bytes)
		thread.bytes = malloc(size);
	if (!thread.bytes || !SEAM_ARRAY_ADD(&ended->threads, thread)) {
		free(thread.bytes);
		ended->n_dropped++;
		return;
	}
	memcpy(thread.bytes, bytes, size);
	ended->n_bytes += cost(&thread);
}

void seam_ended_threads_fini(struct seam_ended_threads *ended)
{
	for (size_t i = 0; i < seam_ended_threads_n(ended); i++)
		free(ended->threads.items[ended->first + i].bytes);
	free(ended->threads.items);
	*ended = (struct seam_ended_threads) { 0 };
}
