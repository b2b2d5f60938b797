/* SPDX-License-Identifier: MIT */
/* progress.c - a line on stderr, redrawn at most ten times a second */
#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_DRAW_NS UINT64_C(300000000)
#define BETWEEN_NS UINT64_C(100000000)

static bool silent;	/* written before threads start, read by all */

void seam_progress_silence(void)
{
	silent = true;
}

void seam_progress_begin(struct seam_progress *p, const char *verb,
			 uint64_t total)
{
	const char *term = getenv("TERM");
	bool is_shown = !silent && isatty(STDERR_FILENO) && term &&
			strcmp(term, "dumb") != 0;

	p->verb = verb;
	p->total = total;
	atomic_init(&p->done, 0);
	atomic_init(&p->drawn, false);
	atomic_init(&p->next_draw_ns,
		    is_shown ? seam_clock_ns() + FIRST_DRAW_NS :
		    UINT64_MAX);
}

static void draw(struct seam_progress *p, uint64_t done)
{
	if (p->total)
		fprintf(stderr, "\r\x1b[K%s %3" PRIu64 " %%", p->verb,
			done >= p->total ? 100 :
			(uint64_t)((double)done * 100 / (double)p->total));
	else
		fprintf(stderr, "\r\x1b[K%s %" PRIu64, p->verb, done);
	fflush(stderr);
	atomic_store(&p->drawn, true);
}

void seam_progress_step(struct seam_progress *p, uint64_t amount)
{
	/* Relaxed: a display may lag; these words publish no other data. */
	uint64_t done = amount + atomic_fetch_add_explicit(
		&p->done, amount, memory_order_relaxed);
	uint64_t due = atomic_load_explicit(&p->next_draw_ns,
					    memory_order_relaxed);
	uint64_t now;

	if (due == UINT64_MAX)
		return;
	now = seam_clock_ns();
	/* The thread that moves the due time draws. */
	if (now >= due &&
	    atomic_compare_exchange_strong(&p->next_draw_ns, &due,
					   now + BETWEEN_NS))
		draw(p, done);
}

void seam_progress_end(struct seam_progress *p)
{
	if (atomic_load(&p->drawn))
		fputs("\r\x1b[K", stderr);
	atomic_store(&p->next_draw_ns, UINT64_MAX);
}
