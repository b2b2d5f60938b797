/* SPDX-License-Identifier: MIT */
/*
 * rewind.c - copies of an AUX buffer whose writer takes bytes back
 *
 * A thread writes words at full speed, begins chunks, and takes back words by
 * the rules of layout.h.  Each word has a hash of the word before it, so a copy
 * of two moments, or of a word that was overwritten, breaks the chain.
 */
#include "ring/aux.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	AREA = 1 << 16,
	CHUNK = 1 << 12,
	MOST_BACK = 15,		/* words */
	MIN_COPIES = 1000,
};

static struct {
	struct seam_ring_control control;
	uint64_t area[AREA / 8];
	_Atomic bool must_end;
	_Atomic uint64_t n_written;
	uint64_t n_back, n_refused;
	bool is_wrong;		/* break the rule: the test must find it */
} run;

static uint64_t next_word(uint64_t before, uint64_t n)
{
	return (before * 0x9e3779b97f4a7c15 ^ before >> 29) << 32 |
	       (n & 0xffffffff);
}

static uint64_t word_before(uint64_t cursor)
{
	return run.area[(cursor - 8) % AREA / 8];
}

static uint64_t put(uint64_t cursor)
{
	struct seam_ring_state *state = &run.control.program;

	if (cursor % CHUNK == 0)
		/* release: before the words; E in doc/design/ring.md */
		atomic_store(&state->aux_head,
			     (cursor & SEAM_RING_AUX_POSITION) + CHUNK);
	*(volatile uint64_t *)&run.area[cursor % AREA / 8] =
		next_word(word_before(cursor), run.n_written);
	run.n_written++;
	atomic_store_explicit(&run.control.aux_head, cursor + 8,
			      memory_order_release);
	return cursor + 8;
}

static uint64_t take_back(uint64_t cursor, uint64_t bytes)
{
	if (!run.is_wrong && atomic_load(&run.control.program.aux_held)) {
		run.n_refused++;
		return cursor;
	}
	run.n_back++;
	cursor -= bytes;
	if (!run.is_wrong)
		cursor += SEAM_RING_AUX_REWOUND;
	atomic_store_explicit(&run.control.aux_head, cursor,
			      memory_order_release);
	return cursor;
}

static void *write_words(void *arg)
{
	uint64_t cursor = 0, random = 1;

	while (!atomic_load_explicit(&run.must_end, memory_order_relaxed)) {
		uint64_t bytes;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		bytes = random % MOST_BACK * 8;
		/* not beyond the begin of a chunk */
		if (random >> 60 < 7 && bytes < cursor % CHUNK)
			cursor = take_back(cursor, bytes);
		cursor = put(cursor);
	}
	return arg;
}

static bool is_chain(const struct seam_ring_aux_snapshot *shot)
{
	uint64_t before, word;

	for (size_t i = 8; i < shot->bytes; i += 8) {
		memcpy(&before, shot->data + i - 8, 8);
		memcpy(&word, shot->data + i, 8);
		if (word != next_word(before, word))
			return false;
	}
	return true;
}

struct copies {
	unsigned long n, n_empty, n_wrong;
};

/* Copy until the writer has written @n_words. */
static struct copies copy(uint64_t n_words)
{
	struct copies c = { 0 };
	struct seam_ring_aux_snapshot shot;
	struct seam_ring_aux aux;

	seam_ring_aux_attach(&aux, &run.control, run.area, AREA);
	if (seam_ring_aux_snapshot_init(&shot, &aux, NULL) < 0)
		exit(1);
	while (run.n_written < 2 * AREA / 8)
		sched_yield();
	while (run.n_written < n_words || c.n < MIN_COPIES) {
		c.n++;
		c.n_empty += seam_ring_aux_snapshot_program(&aux, &shot) == 0;
		c.n_wrong += !is_chain(&shot);
	}
	seam_ring_aux_snapshot_fini(&shot);
	return c;
}

int main(int argc, char **argv)
{
	uint64_t n_words = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	struct copies c;
	pthread_t thread;

	run.is_wrong = argc > 2;
	puts("1..1");
	if (pthread_create(&thread, NULL, write_words, NULL))
		return 1;
	c = copy(n_words);
	atomic_store(&run.must_end, true);
	pthread_join(thread, NULL);
	printf("# %lu copies, %lu empty, %lu wrong; %ju words, %ju times "
	       "words taken back, %ju refused\n", c.n, c.n_empty, c.n_wrong,
	       (uintmax_t)run.n_written, (uintmax_t)run.n_back,
	       (uintmax_t)run.n_refused);
	printf("%sok 1 - a copy of a buffer is of one moment, while its writer "
	       "takes bytes back\n",
	       c.n_wrong || c.n_empty > c.n / 2 ? "not " : "");
	return c.n_wrong > 0;
}
