/* SPDX-License-Identifier: MIT */
/*
 * rounds.c - a program to be interrupted, round after round, by interrupted.c
 *
 * A round calls functions of each kind, by one of several ways through the
 * recorder, between two int3 instructions of its own, at which interrupted.c
 * sets and removes its breakpoint.  A signal may come anywhere in between.
 * After a round the records must be those of the calls, with the handler's four
 * at one place, or at none when no signal came.
 *
 * argument: plain, checked, or depth: checked with a depth that all calls are
 * within, and timed
 */
#include "area_walk.h"
#include "patcher.h"
#include "source_local.h"

#include "ring/producer/local.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"

#include <signal.h>
#include <unistd.h>

#define HIDDEN __attribute__((xray_never_instrument))
#define SHOWN __attribute__((xray_always_instrument, noinline))

enum way {
	FAST,
	NEW_CHUNK,		/* the cursor is at the end of one */
	NEW_CPU,
	WRAP,
	NEW_THREAD,
	END_CHUNK,		/* arguments and an event do not fit */
	AFTER_LOSS,		/* records were left out before a new chunk */
	N_WAYS,
};

static uint32_t id_leaf, id_tail, id_target, id_handler;
static volatile sig_atomic_t n_handlers;
static volatile sig_atomic_t way_now;
static uint64_t n_signals;
static bool is_depth;

enum {
	N_LOST = 3,		/* left out, in AFTER_LOSS */
	FILLER = 0xfffff,	/* a function, of records that are not compared */
};

SHOWN void leaf(void)
{
	__asm__ volatile("");
}

SHOWN void target(void)
{
	__asm__ volatile("");
}

SHOWN void tail(void)
{
	__asm__ volatile("");
	__attribute__((musttail)) return target();
}

SHOWN void handler(int signal)
{
	(void)signal;
	n_handlers++;
	leaf();
}

HIDDEN static void fill(uint64_t to, uint32_t function)
{
	while (*seam_fdr_self.cursor % SEAM_XRAY_CHUNK_BYTES != to)
		seam_fdr_record(seam_xray_word(function, SEAM_XRAY_ENTRY), NULL,
				0);
}

/* After a loss it goes on to another chunk: it could write a second mark. */
HIDDEN static void interrupt(int signal)
{
	handler(signal);
	if (way_now != AFTER_LOSS)
		return;
	for (int i = 0; i < 2; i++) {
		seam_fdr_record(seam_xray_word(FILLER, SEAM_XRAY_ENTRY), NULL,
				0);
		if (i == 0)
			fill(0, FILLER);
	}
}

static const struct walk_record expected[] = {
	{ .kind = SEAM_XRAY_ENTRY, .function = 1 },	/* leaf */
	{ .kind = SEAM_XRAY_EXIT, .function = 1 },
	{ .kind = SEAM_XRAY_ENTRY, .function = 2 },	/* tail */
	{ .kind = SEAM_XRAY_TAIL_EXIT, .function = 2 },
	{ .kind = SEAM_XRAY_ENTRY, .function = 3 },	/* target */
	{ .kind = SEAM_XRAY_EXIT, .function = 3 },
	{ .kind = SEAM_XRAY_ENTRY_ARGS, .function = 1 },
	{ .kind = SEAM_XRAY_ARGUMENT, .value = UINT64_MAX },
	{ .kind = SEAM_XRAY_ARGUMENT, .value = 0x123456789abcdef0 },
	{ .kind = SEAM_XRAY_CUSTOM, .bytes = 11 },
	{ .kind = SEAM_XRAY_TYPED, .bytes = 0, .type = 0xabcd },
	/* an entry that is taken back, or not: a signal is between */
	{ .kind = SEAM_XRAY_ENTRY, .function = 3 },
	/* and a call that is, at its end */
	{ .kind = SEAM_XRAY_ENTRY, .function = 3 },
	{ .kind = SEAM_XRAY_EXIT, .function = 3 },
	{ .kind = SEAM_XRAY_EXIT, .function = 1 },
};

enum {
	N_EXPECTED = sizeof(expected) / sizeof(*expected),
	I_REWOUND = N_EXPECTED - 4,
	I_CALL = N_EXPECTED - 3,
};

HIDDEN static void die(const char *why, enum way way, size_t at)
{
	printf("not ok - %s: way %d, record %zu, %llu signals\n", why, way, at,
	       (unsigned long long)n_signals);
	fflush(stdout);
	_exit(1);
}

HIDDEN static void set_way(enum way way)
{
	struct seam_fdr_state *state;
	uint64_t at;

	if (way == NEW_THREAD) {
		seam_fdr_thread_end();
		return;
	}
	/* room for the round in this chunk, with its preamble */
	for (leaf(); *seam_fdr_self.cursor % SEAM_XRAY_CHUNK_BYTES > 32768; )
		leaf();
	state = seam_fdr_self.state;
	if (way == NEW_CHUNK || way == AFTER_LOSS)
		fill(0, 1);
	if (way == END_CHUNK)
		fill(SEAM_XRAY_CHUNK_BYTES - 80, 1);
	if (way == AFTER_LOSS)
		seam_local_add(&state->gaps.n_lost, N_LOST);
	at = *seam_fdr_self.cursor >> 3 & 1;
	if (way == NEW_CPU)
		state->at[at].cpu ^= 1;
	if (way == WRAP)
		state->at[at].tsc -= UINT64_C(1) << 33;
}

/* The handler's four, the first of which is read. */
HIDDEN static bool is_handler(struct walk *w)
{
	struct walk_record r;

	return walk_next(w, &r) && r.kind == SEAM_XRAY_ENTRY &&
	       r.function == id_leaf &&
	       walk_next(w, &r) && r.kind == SEAM_XRAY_EXIT &&
	       r.function == id_leaf &&
	       walk_next(w, &r) && r.kind == SEAM_XRAY_EXIT &&
	       r.function == id_handler;
}

HIDDEN static bool is_same(const struct walk_record *r,
			   const struct walk_record *want)
{
	const uint32_t ids[] = { 0, id_leaf, id_tail, id_target };

	return r->kind == want->kind && r->function == ids[want->function] &&
	       r->value == want->value && r->bytes == want->bytes &&
	       r->type == want->type &&
	       (!r->bytes || !memcmp(r->payload, "the payload", r->bytes));
}

HIDDEN static bool is_mark(const struct walk_record *r)
{
	return r->kind == SEAM_XRAY_TYPED && r->type == SEAM_XRAY_LOST &&
	       r->bytes == 8 && seam_u64_at(r->payload) == N_LOST;
}

/* @from, @tsc: where the round began.  @rewound: without that entry. */
HIDDEN static void check(enum way way, uint64_t from, uint64_t tsc,
			 bool rewound)
{
	struct seam_fdr_state *state = seam_fdr_self.state;
	size_t n = 0;
	struct walk_record r;
	struct walk w = {
		.area = state->area.bytes, .mask = state->area.size - 1,
		.at = from, .tsc = tsc,
		.end = *state->area.cursor & SEAM_RING_AUX_POSITION,
	};
	uint64_t last = 0;
	int handlers = 0;
	size_t n_marks = 0;

	while (walk_next(&w, &r)) {
		if (r.tsc < last)
			die("a time that steps back", way, n);
		last = r.tsc;
		if (is_mark(&r)) {
			n_marks++;
			continue;
		}
		if (r.function == FILLER && (r.kind == SEAM_XRAY_ENTRY ||
					     r.kind == SEAM_XRAY_EXIT))
			continue;
		if (r.function == id_handler) {
			if (!is_handler(&w))
				die("a torn handler", way, n);
			handlers++;
			continue;
		}
		n += rewound && n == I_REWOUND;
		/* it is taken back where there is no signal in it */
		n += 2 * (n == I_CALL && r.kind == SEAM_XRAY_EXIT);
		if (n >= N_EXPECTED || !is_same(&r, &expected[n++]))
			die("another record", way, n);
	}
	if (w.problem)
		die(w.problem, way, n);
	if (n != N_EXPECTED)
		die("lost records", way, n);
	if (n_marks != (way == AFTER_LOSS))
		die("a loss is not marked once", way, n_marks);
	if (handlers != n_handlers)
		die("lost handlers", way, n);
	/* the next delta is of the last record, wherever one was taken back */
	if (state->at[w.at >> 3 & 1].tsc != w.tsc)
		die("the time of the last record", way, n);
	if (*state->area.n_lost)
		die("lost", way, n);
	if (state->filter.n_open || state->filter.n_timed)
		die("calls that are open", way, n);
}

HIDDEN static void put(uint32_t word, const uint64_t *arguments, unsigned int n)
{
	if (!seam_fdr_put_call(word, arguments, n))
		seam_fdr_record(word, arguments, n);
}

HIDDEN static void end(uint32_t function)
{
	uint32_t word = seam_xray_word(function, SEAM_XRAY_EXIT);

	if (!seam_fdr_put_end(word, 0) &&
	    !seam_fdr_take_back(function, seam_fdr_min_ticks))
		put(word, NULL, 0);
}

/* Frames that were left without an exit, and one that ends after its caller. */
HIDDEN static void leave_frames(void)
{
	const uint32_t entry = seam_xray_word(FILLER, SEAM_XRAY_ENTRY),
		       exit = seam_xray_word(FILLER, SEAM_XRAY_EXIT);
	const uint64_t arguments[6] = { 0 };
	uint64_t outer = (uintptr_t)__builtin_frame_address(0);
	uint64_t inner = outer - 16;

	seam_fdr_check_entry(entry, outer, arguments);
	seam_fdr_check_entry(entry, inner, arguments);
	seam_fdr_check_entry(entry, inner, arguments);
	seam_fdr_check_end(exit, outer);
	seam_fdr_check_end(exit, inner);
}

HIDDEN static void round_of(enum way way)
{
	const uint64_t arguments[] = { UINT64_MAX, 0x123456789abcdef0 };
	uint64_t from, tsc;
	bool rewound;

	set_way(way);
	from = *seam_fdr_self.cursor & SEAM_RING_AUX_POSITION;
	tsc = seam_fdr_self.state->at[from >> 3 & 1].tsc;
	n_handlers = 0;
	way_now = (sig_atomic_t)way;
	__asm__ volatile("int3");
	leaf();
	tail();
	put(seam_xray_word(id_leaf, SEAM_XRAY_ENTRY_ARGS), arguments, 2);
	seam_fdr_event(SEAM_XRAY_CUSTOM, 0, "the payload", 11);
	seam_fdr_event(SEAM_XRAY_TYPED, 0xabcd, NULL, 0);
	seam_fdr_record(seam_xray_word(id_target, SEAM_XRAY_ENTRY), NULL, 0);
	rewound = seam_fdr_take_back(id_target, UINT64_MAX);
	put(seam_xray_word(id_target, SEAM_XRAY_ENTRY), NULL, 0);
	end(id_target);
	end(id_leaf);
	if (is_depth)
		leave_frames();
	__asm__ volatile("int3");
	check(way, from, tsc, rewound);
	n_signals += (uint64_t)n_handlers;
}

HIDDEN static void begin_depth(void)
{
	const struct seam_fdr_options options = {
		.depth = 100,
		.triggers = { { .kind = SEAM_TRIGGER_SLOW,
				.limit_ns = INT64_MAX } },
		.n_triggers = 1,
	};

	if (seam_fdr_check_init(&options))
		_exit(2);
	seam_fdr_trigger_function(0, id_leaf);
	seam_fdr_trigger_function(0, id_tail);
	seam_fdr_trigger_function(0, id_handler);
	seam_fdr_trigger_function(0, FILLER);
}

HIDDEN int main(int argc, char **argv)
{
	bool checked;

	is_depth = argc > 1 && !strcmp(argv[1], "depth");
	checked = is_depth || (argc > 1 && !strcmp(argv[1], "checked"));
	local_bytes = 4 * SEAM_XRAY_CHUNK_BYTES;
	local_free_running = true;
	seam_fdr_rseq_init(false);
	if (seam_fdr_thread_init(&source_local))
		return 2;
	patcher_patch(checked ? &patcher_checked : &patcher_plain);
	id_leaf = patcher_id((void *)leaf);
	id_tail = patcher_id((void *)tail);
	id_target = patcher_id((void *)target);
	id_handler = patcher_id((void *)handler);
	if (is_depth)
		begin_depth();
	signal(SIGUSR1, interrupt);
	/* the tracer ends it, with a signal */
	for (unsigned int i = 0;; i++) {
		/* else checked trampolines would take it back */
		seam_fdr_min_ticks = checked ? 0 : i % 2 ? 1 : UINT64_MAX;
		round_of((enum way)(i % N_WAYS));
	}
}
