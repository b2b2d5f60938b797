/* SPDX-License-Identifier: MIT */
/* fdr_record.c - see fdr_record.h, and wire/xray/xray_chunk.h for chunks */
#include "traced/fdr/record/fdr_record.h"

#include "ring/layout.h"
#include "ring/producer/local.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/saved.h"
#include "traced/fdr/record/system.h"

#include <errno.h>

enum {
	CHUNK = SEAM_XRAY_CHUNK_BYTES,
	MAX_WORDS = SEAM_XRAY_MAX_CALL_BYTES / 8,
	PREAMBLE_WORDS = SEAM_XRAY_PREAMBLE_BYTES / 8,
	MARK_WORDS = 3,
};

_Static_assert(CHUNK == 1 << 16, "trampolines.S tests the low 16 bits");

enum outcome {
	DONE,
	AGAIN,		/* interrupted, or a chunk was begun or ended */
	LOST,		/* there is no room */
	PAUSED,		/* no chunk may begin */
};

/* A record to be made. */
struct item {
	uint32_t word;		/* of a function record; 0: of an event */
	unsigned int n_arguments;
	const uint64_t *arguments;
	uint64_t marker[2];	/* of an event, with a delta of 0 */
	const void *payload;
	uint64_t bytes;
};

/* The thread's state, time and CPU, for its next record. */
struct thread_now {
	struct seam_fdr_state *state;
	uint64_t cursor, tsc;
	uint32_t cpu;
	uint32_t rseq_cpu;	/* no CPU where nothing restarts */
	bool restarts;		/* rseq works */
};

static void read_now(struct thread_now *now, struct seam_fdr_state *state)
{
	now->state = state;
	now->cursor = seam_local_load(state->area.cursor);
	now->restarts = seam_fdr_rseq_is_active();
	now->rseq_cpu = seam_fdr_rseq_cpu();
	now->cpu = now->restarts ? now->rseq_cpu : seam_fdr_tsc_cpu();
	now->tsc = seam_fdr_tsc();
}

static const struct seam_fdr_at *last_of(const struct thread_now *now)
{
	return &now->state->at[now->cursor >> 3 & 1];
}

static struct seam_fdr_put put_of(const struct thread_now *now, uint64_t end)
{
	return (struct seam_fdr_put) {
		.state = now->state, .cursor = now->cursor, .end = end,
		.tsc = now->tsc, .cpu = now->rseq_cpu,
		.state_cpu = now->restarts ? now->cpu ^ SEAM_FDR_CPU : 0,
	};
}

static enum outcome commit(const struct thread_now *now,
			   const struct seam_fdr_put *put)
{
	if (!seam_fdr_commit(put))
		return AGAIN;
	now->state->cpu = now->cpu;
	return DONE;
}

static void put_cpu(uint64_t *words, uint32_t cpu, uint64_t tsc)
{
	words[0] = SEAM_XRAY_NEW_CPU | (uint64_t)(uint16_t)cpu << 8 | tsc << 24;
	words[1] = tsc >> 40;
}

/* Without the count of records taken back. */
static uint64_t position(uint64_t cursor)
{
	return cursor & SEAM_RING_AUX_POSITION;
}

/* A handler may have gone further than @end. */
static void reserve(struct seam_fdr_area *area, uint64_t end)
{
	uint64_t before;

	do
		before = seam_local_load(area->reserved);
	while (before < end &&
	       !seam_local_replace(area->reserved, before, end));
	/* E of doc/design/ring.md */
	atomic_thread_fence(memory_order_release);
}

static void put_preamble(uint64_t *words, const struct thread_now *now,
			 const struct timespec *time)
{
	words[0] = SEAM_XRAY_NEW_BUFFER | (uint64_t)now->state->tid << 8;
	words[1] = 0;
	words[2] = SEAM_XRAY_WALL_TIME | (uint64_t)time->tv_sec << 8;
	words[3] = (uint64_t)time->tv_sec >> 56 |
		   (uint64_t)(time->tv_nsec / 1000) << 8;
	words[4] = SEAM_XRAY_PID | (uint64_t)now->state->pid << 8;
	words[5] = 0;
	put_cpu(words + 6, now->cpu, now->tsc);
}

/*
 * Note that a mark was written: its chunk is begun.  A handler may note a mark
 * at any point; n_marked never falls.
 */
static void note_mark(struct seam_fdr_state *state)
{
	struct seam_fdr_gaps *gaps = &state->gaps;
	uint64_t n_marked = seam_local_load(&gaps->n_marked);
	uint64_t n_lost = seam_local_load(&gaps->mark_n_lost);

	if (n_lost > n_marked && position(seam_local_load(state->area.cursor)) >
				 seam_local_load(&gaps->mark_at))
		seam_local_replace(&gaps->n_marked, n_marked, n_lost);
}

/* A mark of the records lost since the last mark.  Words; 0: none was lost. */
static size_t put_mark(uint64_t *words, const struct thread_now *now)
{
	struct seam_fdr_gaps *gaps = &now->state->gaps;
	uint64_t n_lost = seam_local_load(&gaps->n_lost);
	uint64_t n_marked = seam_local_load(&gaps->n_marked);

	if (n_lost == n_marked)
		return 0;
	/* in this order: note_mark() sees the chunk of this mark, or no mark */
	seam_local_store(&gaps->mark_at, position(now->cursor));
	seam_local_fence();
	seam_local_store(&gaps->mark_n_lost, n_lost);
	words[0] = SEAM_XRAY_TYPED_EVENT | 8 << 8;
	words[1] = SEAM_XRAY_LOST << 8;
	words[2] = n_lost - n_marked;
	return MARK_WORDS;
}

/* At the start of a chunk, with room for the chunk. */
static void begin_chunk(struct seam_fdr_state *state)
{
	uint64_t words[PREAMBLE_WORDS + MARK_WORDS], at;
	struct seam_fdr_area *area = &state->area;
	struct timespec time;
	struct seam_fdr_put put;
	struct thread_now now;
	size_t n_mark;

	seam_fdr_clock(&time);
	note_mark(state);
	read_now(&now, state);
	if (now.cursor % CHUNK)
		return;
	at = position(now.cursor);
	reserve(area, at + CHUNK);
	put_preamble(words, &now, &time);
	n_mark = put_mark(words + PREAMBLE_WORDS, &now);
	put = put_of(&now, 0);
	put.words = words;
	put.n_words = PREAMBLE_WORDS + n_mark;
	put.end = now.cursor + put.n_words * 8;
	/* for seam_fdr_take_back(), as in try() */
	if (n_mark)
		state->event_end = put.end;
	if (commit(&now, &put) != DONE)
		return;
	note_mark(state);
	if (area->wakeup && at - area->wakeup_at >= area->size / 4) {
		area->wakeup_at = at;
		(void)seam_fdr_call_saved(seam_fdr_wake, area);
	}
}

/* Zeroes to the end of the chunk. */
static enum outcome end_chunk(const struct thread_now *now)
{
	struct seam_fdr_put put =
		put_of(now, (now->cursor | (CHUNK - 1)) + 1);

	put.tsc = last_of(now)->tsc;
	put.state_cpu = last_of(now)->cpu;
	put.padding = put.end - put.cursor;
	seam_fdr_commit(&put);
	return AGAIN;
}

/* NewCPUId or TSCWrap, where needed, and the item.  The number of words. */
static size_t build(const struct thread_now *now, const struct item *item,
		    uint64_t *words)
{
	const struct seam_fdr_at *last = last_of(now);
	uint32_t cpu = now->restarts ? last->cpu ^ SEAM_FDR_CPU :
					now->state->cpu;
	uint64_t delta = now->tsc - last->tsc;
	/* an event's delta is signed */
	uint64_t most = item->word ? UINT32_MAX : INT32_MAX;
	size_t n = 0;

	if (cpu != now->cpu) {
		put_cpu(words, now->cpu, now->tsc);
		n = 2;
	} else if (delta > most) {
		words[0] = SEAM_XRAY_TSC_WRAP | now->tsc << 8;
		words[1] = now->tsc >> 56;
		n = 2;
	}
	if (n)
		delta = 0;
	if (!item->word) {
		words[n++] = item->marker[0] | delta << 40;
		words[n++] = item->marker[1] | delta >> 24;
		return n;
	}
	words[n++] = item->word | delta << 32;
	for (unsigned int i = 0; i < item->n_arguments; i++) {
		words[n++] = SEAM_XRAY_CALL_ARGUMENT | item->arguments[i] << 8;
		words[n++] = item->arguments[i] >> 56;
	}
	return n;
}

/* At the start of a chunk, at @at: begin the chunk, if that is allowed. */
static enum outcome prepare(struct seam_fdr_state *state, uint64_t at)
{
	const struct seam_fdr_area *area = &state->area;

	if (!seam_fdr_may_begin_chunk(state, at))
		return PAUSED;
	/* acquire: A of doc/design/ring.md; an invalid tail leaves no room */
	if (area->tail &&
	    at - atomic_load_explicit(area->tail, memory_order_acquire) >
	    area->size - CHUNK)
		return LOST;
	begin_chunk(state);
	return AGAIN;
}

static enum outcome try(struct seam_fdr_state *state, const struct item *item)
{
	uint64_t words[MAX_WORDS], room = 0;
	struct seam_fdr_put put;
	struct thread_now now;

	read_now(&now, state);
	if (now.cursor % CHUNK == 0)
		return prepare(state, position(now.cursor));
	put = put_of(&now, 0);
	put.words = words;
	put.n_words = build(&now, item, words);
	if (!item->word)
		room = seam_xray_payload_room(item->bytes);
	put.end = now.cursor + put.n_words * 8 + room;
	if ((put.end - 1) / CHUNK != now.cursor / CHUNK)
		return end_chunk(&now);
	put.payload = item->payload;
	put.bytes = item->bytes;
	put.padding = room - item->bytes;
	/* for seam_fdr_take_back(); a commit that fails does no harm */
	if (!item->word)
		state->event_end = put.end;
	else if (put.n_words > 1 + 2 * item->n_arguments)
		state->entry_end = put.end;
	return commit(&now, &put);
}

static void lose(struct seam_fdr_state *state, enum outcome why)
{
	if (state) {
		seam_local_add(&state->gaps.n_lost, 1);
		seam_local_add(why == PAUSED && state->area.n_paused ?
			       state->area.n_paused : state->area.n_lost, 1);
	} else if (seam_fdr_n_lost) {
		/* relaxed: a count, of any thread */
		atomic_fetch_add_explicit(seam_fdr_n_lost, 1,
					  memory_order_relaxed);
	}
}

struct seam_fdr_state *seam_fdr_thread(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (seam_fdr_has_area(state))
		return state;
	if (state->tid && !state->has_area && seam_fdr_tsc() < state->retry_tsc)
		return NULL;
	return seam_fdr_call_saved(seam_fdr_begin_thread, NULL) ?
	       seam_fdr_self.state : NULL;
}

static void record(const struct item *item)
{
	struct seam_fdr_state *state = seam_fdr_thread();
	bool block = state && !seam_fdr_rseq_is_active();
	uint64_t blocked = block ? seam_fdr_block() : 0;
	enum outcome outcome = state ? AGAIN : LOST;

	while (outcome == AGAIN) {
		/* a handler may have forked, or ended the thread's area */
		state = seam_fdr_thread();
		outcome = state ? try(state, item) : LOST;
	}
	if (outcome != DONE)
		lose(state, outcome);
	if (block)
		seam_fdr_unblock(blocked);
}

void seam_fdr_record(uint32_t word, const uint64_t *arguments,
		     unsigned int n_arguments)
{
	record(&(struct item) {
		.word = word, .arguments = arguments,
		.n_arguments = n_arguments < SEAM_XRAY_MAX_ARGUMENTS ?
			       n_arguments : SEAM_XRAY_MAX_ARGUMENTS,
	});
}

void seam_fdr_event(enum seam_xray_kind kind, uint16_t type, const void *data,
		    size_t bytes)
{
	struct item item = {
		.payload = data,
		.bytes = bytes < SEAM_XRAY_MAX_PAYLOAD ?
			 bytes : SEAM_XRAY_MAX_PAYLOAD,
	};

	item.marker[0] = item.bytes << 8;
	if (kind == SEAM_XRAY_TYPED) {
		item.marker[0] |= SEAM_XRAY_TYPED_EVENT;
		item.marker[1] = (uint64_t)type << 8;
	} else {
		item.marker[0] |= SEAM_XRAY_CUSTOM_EVENT;
	}
	record(&item);
}

/*
 * ---- what event sleds pass ----
 *
 * Compilers before LLVM 19 move the operands of such a sled one after the
 * other, and an operand may overwrite another: address and size may be any
 * numbers.  So the payload is checked before it is read.
 */

enum {
	PAGE = 4096,
	SET_BYTES = 8,		/* of the kernel's signal set */
	NO_SUCH_HOW = -1,
};

/*
 * Whether 8 bytes at @address can be read: the kernel reads the set before it
 * refuses to do anything with it.  Source: rt_sigprocmask(2), EFAULT comes
 * before EINVAL.
 */
static bool is_readable(uintptr_t address)
{
	/* no set at all is no error */
	return address >= SET_BYTES &&
	       seam_fdr_syscall4(SYS_rt_sigprocmask, NO_SUCH_HOW,
				 (long)(address & ~(uintptr_t)7), 0,
				 SET_BYTES) != -EFAULT;
}

static void event_of_sled(enum seam_xray_kind kind, uint16_t type,
			  const void *data, size_t bytes)
{
	uintptr_t first = (uintptr_t)data, last;

	if (bytes > SEAM_XRAY_MAX_PAYLOAD)
		bytes = SEAM_XRAY_MAX_PAYLOAD;
	last = first + bytes - 1;
	/* drop a payload that is not memory; it has two pages at most */
	if (bytes && (last < first || !is_readable(first) ||
		      (first / PAGE != last / PAGE && !is_readable(last))))
		bytes = 0;
	seam_fdr_event(kind, type, data, bytes);
}

void seam_fdr_record_custom(const void *data, size_t bytes)
{
	event_of_sled(SEAM_XRAY_CUSTOM, 0, data, bytes);
}

void seam_fdr_record_typed(size_t type, const void *data, size_t bytes)
{
	event_of_sled(SEAM_XRAY_TYPED, (uint16_t)type, data, bytes);
}
