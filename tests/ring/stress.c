/* SPDX-License-Identifier: MIT */
/*
 * stress.c - two processors on one ring, every record accounted for
 *
 *	stress N_RECORDS
 *
 * One thread produces records with a running number and a checksum, with
 * nested writers at the test points; another consumes.  At the end produced =
 * delivered + lost, to the record, and the LOST records add up to the same.
 * Each run begins at another position: 0, just below 2^32, just below 2^64.
 * Compiled three times: plain, with test points and delays, and those under
 * ThreadSanitizer.  Prints TAP.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SEAM_RING_TEST_POINTS
#include "test_points.h"
#endif
#include "ring/aux.h"
#include "aux_writer.h"

enum { PAGE = 4096, DATA = 16384, AREA = 8192 };

/* A payload of 16 bytes and more: number, checksum, filling. */
enum { TYPE_OUTER = PERF_RECORD_SAMPLE, TYPE_NESTED = 1000 };

static struct run {
	_Alignas(PAGE) uint8_t memory[PAGE + DATA];
	_Alignas(64) uint8_t area[AREA];
	struct seam_ring_producer producer;
	uint64_t n_wanted, n_nested;
	uint64_t n_refused;		/* begin() that failed */
	uint64_t n_hidden;		/* ended, but still not visible */
	_Atomic bool is_done;		/* producer writes, after its last */
} run;

static int n_tests, n_failed;

static void report(bool holds, const char *what, const char *where)
{
	n_failed += !holds;
	printf("%sok %d - %s, %s\n", holds ? "" : "not ", ++n_tests, what,
	       where);
}

static uint64_t checksum(uint64_t n, uint32_t type)
{
	return (n + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ type;
}

static void put_number(uint32_t type, uint64_t n)
{
	struct seam_ring_writer w;
	size_t more = n % 7 * 8;
	uint64_t words[2] = { n, checksum(n, type) };

	if (seam_ring_begin(&run.producer, &w, type, 0, 16 + more)) {
		run.n_refused++;
		return;
	}
	seam_ring_put(&w, words, sizeof(words));
	for (size_t i = 0; i < more; i += 8)
		seam_ring_put(&w, &words[1], 8);
	seam_ring_end(&w);
}

#ifdef SEAM_RING_TEST_POINTS
static _Thread_local int depth;

/* What a signal handler would do here; now and then, three deep. */
static void nest(void)
{
	if (depth >= 3 || next_random(&point_random) % 64)
		return;
	depth++;
	put_number(TYPE_NESTED, run.n_nested++);
	depth--;
}

static void set_points(uint64_t seed, bool nested)
{
	point_random = seed;
	on_point = nested ? nest : NULL;
}
#else
static void set_points(uint64_t seed, bool nested)
{
	(void)seed;
	(void)nested;
}
#endif

static void *produce(void *arg)
{
	struct seam_ring_control *control = (void *)run.memory;

	(void)arg;
	set_points(0x1234567, true);
	for (uint64_t i = 0; i < run.n_wanted; i++) {
		put_number(TYPE_OUTER, i);
		/* Nobody writes now: all is published, nested ones too. */
		run.n_hidden += control->program.head != control->data_head;
	}
	set_points(0, false);
	/* release: pairs with the acquire in consume() */
	atomic_store_explicit(&run.is_done, true, memory_order_release);
	return NULL;
}

struct seen {
	uint64_t n, next[2], lost, bad;
};

static void look(struct seen *seen, const struct seam_ring_header *h,
		 const uint8_t *record)
{
	bool nested = h->type == TYPE_NESTED;
	uint64_t words[2], fill;

	memcpy(words, record + 8, sizeof(words));
	if (h->type == PERF_RECORD_LOST) {
		seen->lost += words[1];
		return;
	}
	seen->n++;
	if (words[1] != checksum(words[0], h->type) ||
	    h->size != 24 + words[0] % 7 * 8 ||
	    words[0] < seen->next[nested])
		seen->bad++;
	for (size_t at = 24; at < h->size; at += 8) {
		memcpy(&fill, record + at, 8);
		seen->bad += fill != words[1];
	}
	/*
	 * Numbers of one kind grow; but of nested writers the inner one takes
	 * its number second and its place first.
	 */
	seen->next[nested] = nested ? 0 : words[0] + 1;
}

static size_t drain(struct seam_ring *ring, struct seen *seen)
{
	static uint8_t record[UINT16_MAX];
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t n = seam_ring_peek(ring, &span), pos = 0;

	while (seam_ring_copy(&span, pos, &header, record)) {
		look(seen, &header, record);
		pos += header.size;
	}
	seen->bad += pos != n;
	seam_ring_advance(ring, &span);
	return n;
}

static void start_at(uint64_t start)
{
	struct seam_ring_control *control = (void *)run.memory;

	memset(&run, 0, sizeof(run));
	atomic_store(&control->data_head, start);
	atomic_store(&control->data_tail, start);
	atomic_store(&control->aux_head, start);
	atomic_store(&control->aux_tail, start);
}

static void forward(uint64_t n, uint64_t start, const char *where)
{
	struct seam_ring_state *own =
		&((struct seam_ring_control *)run.memory)->program;
	struct seen seen = { 0 };
	struct seam_ring ring;
	pthread_t thread;
	uint64_t lost = 0;
	bool done;

	start_at(start);
	run.n_wanted = n;
	seam_ring_producer_init(&run.producer, run.memory, PAGE, DATA);
	seam_ring_attach(&ring, run.memory, PAGE, DATA);
	pthread_create(&thread, NULL, produce, NULL);
	set_points(0x7654321, false);
	do {
		/* acquire: pairs with the release in produce() */
		done = atomic_load_explicit(&run.is_done, memory_order_acquire);
	} while (drain(&ring, &seen) > 0 || !done);
	set_points(0, false);
	pthread_join(thread, NULL);
	for (int i = 0; i < SEAM_RING_N_LOSSES; i++)
		lost += own->n_lost[i];
	printf("# %s: produced %ju, delivered %ju, lost %ju\n", where,
	       (uintmax_t)(n + run.n_nested), (uintmax_t)seen.n,
	       (uintmax_t)lost);
	report(seen.bad == 0 && ring.n_resyncs == 0 && run.n_hidden == 0,
	       "every record is whole and in order", where);
	report(n + run.n_nested == seen.n + lost && lost == run.n_refused &&
	       own->n_begun == seen.n, "produced = delivered + lost", where);
	report(seen.lost + own->n_lost_unreported == lost,
	       "LOST records tell what was lost", where);
}

/* The byte at a position follows from the position. */
static uint8_t byte_at(uint64_t pos)
{
	pos &= SEAM_RING_AUX_POSITION;
	return (uint8_t)((pos * 0x9e3779b97f4a7c15) >> 56 | 1);
}

static void *produce_aux(void *arg)
{
	struct aux_writer *aux = arg;
	uint8_t bytes[512];

	set_points(0x1234567, false);
	for (uint64_t i = 0; i < run.n_wanted; i++) {
		size_t n = 1 + i % sizeof(bytes);

		for (size_t k = 0; k < n; k++)
			bytes[k] = byte_at(aux->pos + k);
		aux_write(aux, bytes, n);
	}
	set_points(0, false);
	/* release: pairs with the acquire in the consumers */
	atomic_store_explicit(&run.is_done, true, memory_order_release);
	return NULL;
}

static uint64_t check_span(const struct seam_ring_span *span, uint64_t pos)
{
	uint64_t bad = 0;

	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < span->size[part]; i++)
			bad += span->part[part][i] != byte_at(pos++);
	return bad;
}

static uint64_t look_at_aux(struct seam_ring_aux *aux,
			    struct seam_ring_aux_snapshot *shot,
			    bool free_running)
{
	struct seam_ring_span span;
	uint64_t bad;

	if (free_running) {
		seam_ring_aux_snapshot_program(aux, shot);
		span = (struct seam_ring_span) {
			.part = { shot->data }, .size = { shot->bytes },
		};
		return check_span(&span, shot->offset);
	}
	seam_ring_aux_peek(aux, &span);
	bad = check_span(&span, aux->tail);
	seam_ring_aux_advance(aux, &span);
	return bad;
}

static void aux(uint64_t n, uint64_t start, bool free_running,
		const char *where)
{
	struct aux_writer producer;
	struct seam_ring_aux_snapshot shot;
	struct seam_ring_aux consumer;
	struct seen seen = { 0 };
	struct seam_ring ring;
	pthread_t thread;
	bool done;

	start_at(start);
	run.n_wanted = n;
	seam_ring_producer_init(&run.producer, run.memory, PAGE, DATA);
	seam_ring_attach(&ring, run.memory, PAGE, DATA);
	aux_writer_init(&producer, &run.producer, run.area, AREA, free_running);
	seam_ring_aux_attach(&consumer, ring.control, run.area, AREA);
	seam_ring_aux_snapshot_init(&shot, &consumer, NULL);
	pthread_create(&thread, NULL, produce_aux, &producer);
	set_points(0x7654321, false);
	do {
		struct seam_ring_span span;

		/* acquire: pairs with the release in produce_aux() */
		done = atomic_load_explicit(&run.is_done, memory_order_acquire);
		seam_ring_peek(&ring, &span);
		seam_ring_advance(&ring, &span);
		seen.bad += look_at_aux(&consumer, &shot, free_running);
	} while (!done);
	set_points(0, false);
	pthread_join(thread, NULL);
	report(seen.bad == 0 && consumer.n_resyncs == 0, free_running ?
	       "snapshots of a running AUX writer hold its bytes" :
	       "drained AUX bytes are those written", where);
	seam_ring_aux_snapshot_fini(&shot);
}

int main(int argc, char **argv)
{
	static const struct {
		uint64_t start;
		const char *where;
	} starts[] = {
		{ 0, "from 0" },
		{ (UINT64_C(1) << 32) - 1024, "across 2^32" },
		{ -UINT64_C(1024), "across 2^64" },
	};
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(starts); i++) {
		forward(n / 3, starts[i].start, starts[i].where);
		aux(n / 100, starts[i].start, false, starts[i].where);
		aux(n / 100, starts[i].start, true, starts[i].where);
	}
	printf("1..%d\n", n_tests);
	return n_failed > 0;
}
