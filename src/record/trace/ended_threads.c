/* SPDX-License-Identifier: MIT */
/* ended_threads.c - a queue with a limit of bytes; see ended_threads.h */
#include "record/trace/ended_threads.h"

#include <stdlib.h>

/* What a thread counts for: its calls, and what is needed to keep them. */
static uint64_t cost(size_t size)
{
	return size + sizeof(struct seam_ended_thread);
}

static void drop_first(struct seam_ended_threads *ended)
{
	struct seam_ended_thread *first = ended->first;

	ended->first = first->next;
	ended->n_bytes -= cost(first->size);
	ended->n_dropped++;
	free(first);
}

void seam_ended_threads_add(struct seam_ended_threads *ended,
			    const struct seam_ended_thread *thread,
			    const uint8_t *bytes)
{
	struct seam_ended_thread *kept = NULL;
	uint64_t n_bytes = cost(thread->size);

	if (!thread->size)
		return;
	while (ended->first && ended->n_bytes + n_bytes > ended->max_bytes)
		drop_first(ended);
	if (n_bytes <= ended->max_bytes)
		kept = malloc(n_bytes);
	if (!kept) {
		ended->n_dropped++;
		return;
	}
	*kept = *thread;
	kept->next = NULL;
	memcpy(kept->bytes, bytes, kept->size);
	if (ended->first)
		ended->last->next = kept;
	else
		ended->first = kept;
	ended->last = kept;
	ended->n_bytes += n_bytes;
}

void seam_ended_threads_fini(struct seam_ended_threads *ended)
{
	while (ended->first)
		drop_first(ended);
	*ended = (struct seam_ended_threads) { 0 };
}
