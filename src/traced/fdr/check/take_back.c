/* SPDX-License-Identifier: MIT */
/* take_back.c - see take_back.h; put.S does the most frequent case */
#include "traced/fdr/check/take_back.h"

#include "ring/layout.h"
#include "traced/fdr/record/commit.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/xray_chunk.h"

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	MAX_INSIDE = 16,	/* tail calls inside one another */
};

/* Backwards through the records of a chunk. */
struct backward {
	const struct seam_fdr_state *state;
	uint64_t cursor, at;	/* where it began; the record before is next */
	uint64_t tsc;		/* of the record before at */
	uint64_t now, max_ticks;
	uint32_t function;	/* that ends */
	bool found;		/* its entry */
	uint32_t inside[MAX_INSIDE];	/* ended, their entries to be found */
	unsigned int n_inside;
	/* before this all can be taken back; the time of the record before */
	uint64_t to, to_tsc;
};

static bool is_same_position(uint64_t a, uint64_t b)
{
	return ((a ^ b) & SEAM_RING_AUX_POSITION) == 0;
}

/* Word @n before @at; 0 where another chunk, or a preamble is. */
static uint64_t word_before(const struct backward *w, uint64_t at,
			    unsigned int n)
{
	const struct seam_fdr_area *area = &w->state->area;

	if (at % CHUNK < SEAM_XRAY_PREAMBLE_BYTES + n * 8)
		return 0;
	at = (at - n * 8) & (area->size - 1);
	return *(const uint64_t *)(const void *)(area->bytes + at);
}

/*
 * The function record before at, and the words that it has with its arguments.
 * An argument's second word has zeroes where a function record has its delta.
 */
static uint64_t record_before(const struct backward *w, unsigned int *n_words)
{
	unsigned int n = 0;

	while (n < 2 * SEAM_XRAY_MAX_ARGUMENTS &&
	       word_before(w, w->at, n + 1) >> 8 == 0 &&
	       (word_before(w, w->at, n + 2) & 0xff) == SEAM_XRAY_CALL_ARGUMENT)
		n += 2;
	*n_words = n + 1;
	return word_before(w, w->at, n + 1);
}

static void step(struct backward *w, uint64_t record, unsigned int n_words)
{
	w->at -= n_words * 8;
	w->tsc -= record >> 32;
	if (w->found && w->n_inside == 0) {
		w->to = w->at;
		w->to_tsc = w->tsc;
	}
}

static bool take_entry(struct backward *w, uint32_t function)
{
	if (w->now - w->tsc >= w->max_ticks)
		return false;
	if (w->n_inside > 0)
		return w->inside[--w->n_inside] == function;
	if (w->found || function != w->function)
		return false;
	w->found = true;
	return true;
}

/* One record back.  False: it is none that may go. */
static bool walk_back(struct backward *w)
{
	unsigned int n_words;
	uint64_t record;
	uint32_t action;

	/* a payload can look like anything */
	if (is_same_position(w->at, w->state->event_end))
		return false;
	record = record_before(w, &n_words);
	action = (uint32_t)record & 15;
	/* metadata before it, or part of that */
	if (record >> 32 == 0 && w->at != w->state->entry_end)
		return false;
	if (action == SEAM_XRAY_TAIL_EXIT << 1) {
		if (w->n_inside == MAX_INSIDE)
			return false;
		w->inside[w->n_inside++] = (uint32_t)record >> 4;
	} else if ((action != SEAM_XRAY_ENTRY << 1 &&
		    action != SEAM_XRAY_ENTRY_ARGS << 1) ||
		   !take_entry(w, (uint32_t)record >> 4)) {
		return false;
	}
	step(w, record, n_words);
	return record >> 32 != 0;
}

static bool try_once(struct seam_fdr_state *state, uint32_t function,
		     uint64_t max_ticks)
{
	uint64_t cursor = atomic_load_explicit(state->area.cursor,
					       memory_order_relaxed);
	const struct seam_fdr_at *last = &state->at[cursor >> 3 & 1];
	struct backward w = {
		.state = state, .cursor = cursor, .at = cursor,
		.tsc = last->tsc, .max_ticks = max_ticks, .function = function,
	};
	struct seam_fdr_put put = {
		.state = state, .cursor = cursor, .cpu = seam_fdr_rseq_cpu(),
		.state_cpu = last->cpu, .held = state->area.held,
	};

	w.now = seam_fdr_tsc();
	while (walk_back(&w))
		;
	if (!w.to)
		return false;
	put.end = w.to + SEAM_RING_AUX_REWOUND;
	put.tsc = w.to_tsc;
	return seam_fdr_commit(&put);
}

bool seam_fdr_take_back(uint32_t function, uint64_t max_ticks)
{
	struct seam_fdr_state *state = seam_fdr_self.state;
	uint64_t blocked;
	bool done;

	if (!state->has_area)
		return false;
	/* where a handler came in between, its records are the last */
	if (seam_fdr_rseq_is_active())
		return try_once(state, function, max_ticks);
	blocked = seam_fdr_block();
	done = try_once(state, function, max_ticks);
	seam_fdr_unblock(blocked);
	return done;
}
