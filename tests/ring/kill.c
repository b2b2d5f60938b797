/* SPDX-License-Identifier: MIT */
/*
 * kill.c - producers that are killed, at any step and at any time
 *
 *	kill N
 *
 * A child writes numbered records, nested ones among them, and bytes into an
 * AUX area.  Half of the children kill themselves at a random test point,
 * between two steps that another processor can see; half are killed from
 * outside while we drain.  All that a child had finished is delivered, and
 * nothing else: no torn record, no number out of order, no wrong byte.
 * Prints TAP.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/aux.h"
#include "aux_writer.h"
#include "test_points.h"

enum {
	PAGE = 4096, DATA = 65536, AREA = 4096, MAX_NUMBER = 500,
	/* A record, and one nested in it at each of its test points. */
	MAX_TORN = 16,
};

/* Shared with the child. */
struct stage {
	_Alignas(PAGE) uint8_t memory[PAGE + DATA];
	uint8_t area[AREA];
	_Atomic uint64_t n_finished;	/* outermost records that have ended */
};

static struct stage *stage;
static struct seam_ring_producer ring;
static struct aux_writer aux;
static uint64_t n_nested;

enum { TYPE_OUTER = 1, TYPE_NESTED = 20 };

static uint8_t byte_at(uint64_t pos)
{
	return (uint8_t)((pos * 0x9e3779b97f4a7c15) >> 56 | 1);
}

static uint64_t checksum(uint64_t n, uint32_t type)
{
	return (n + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ type;
}

static void put_number(uint32_t type, uint64_t n)
{
	uint64_t words[5] = { n, checksum(n, type), n, n, n };

	seam_ring_write(&ring, type, 0, words, 16 + n % 4 * 8);
}

/* What a signal handler would do. */
static void nest(void)
{
	static bool inside;
	static uint64_t x = 1;

	if (inside || next_random(&x) % 32)
		return;
	inside = true;
	put_number(TYPE_NESTED, n_nested++);
	inside = false;
}

static void put_bytes(void)
{
	uint8_t bytes[97];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = byte_at(aux.pos + i);
	aux_write(&aux, bytes, sizeof(bytes));
}

static void produce(uint64_t steps_to_live)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	points_to_live = steps_to_live;
	on_point = nest;
	for (uint64_t n = 0; steps_to_live == 0 || n < MAX_NUMBER; n++) {
		put_number(TYPE_OUTER, n);
		atomic_store(&stage->n_finished, n + 1);
		put_bytes();
	}
	raise(SIGKILL);
}

static struct {
	uint64_t n_outer, n_all, n_bad, next;
} seen;

static void drain(struct seam_ring *in)
{
	static uint8_t record[UINT16_MAX];
	struct seam_ring_header h;
	struct seam_ring_span span;
	size_t bytes = seam_ring_peek(in, &span), pos = 0;
	uint64_t words[2];

	for (; seam_ring_copy(&span, pos, &h, record); pos += h.size) {
		if (h.type == PERF_RECORD_LOST)
			continue;
		memcpy(words, record + 8, sizeof(words));
		seen.n_all++;
		seen.n_bad += words[1] != checksum(words[0], h.type) ||
			      h.size != 24 + words[0] % 4 * 8;
		if (h.type != TYPE_OUTER)
			continue;
		seen.n_bad += words[0] < seen.next;
		seen.next = words[0] + 1;
		seen.n_outer++;
	}
	seen.n_bad += pos != bytes;
	seam_ring_advance(in, &span);
}

static void check_area(void)
{
	struct seam_ring_aux_snapshot shot;
	struct seam_ring_aux in;

	seam_ring_aux_attach(&in, (void *)stage->memory, stage->area, AREA);
	seam_ring_aux_snapshot_init(&shot, &in, NULL);
	seam_ring_aux_snapshot_program(&in, &shot);
	for (size_t i = 0; i < shot.bytes; i++)
		seen.n_bad += shot.data[i] != byte_at(shot.offset + i);
	/* Each chunk goes before the next record. */
	if (atomic_load(&stage->n_finished) > 1 && shot.bytes == 0)
		seen.n_bad++;
	seam_ring_aux_snapshot_fini(&shot);
}

/* Kill one child; whether all was as promised. */
static bool try_once(uint64_t *x)
{
	struct seam_ring_control *control = (void *)stage->memory;
	bool by_step = next_random(x) % 2;
	uint64_t steps = by_step ? 1 + next_random(x) % 4000 : 0;
	uint64_t us = next_random(x) % 400, finished, lost = 0;
	struct seam_ring in;
	pid_t pid;

	memset((void *)stage, 0, sizeof(*stage));
	memset(&seen, 0, sizeof(seen));
	n_nested = 0;
	seam_ring_producer_init(&ring, stage->memory, PAGE, DATA);
	aux_writer_init(&aux, &ring, stage->area, AREA, true);
	seam_ring_attach(&in, stage->memory, PAGE, DATA);
	pid = fork();
	if (pid == 0)
		produce(steps);
	if (!by_step) {
		for (uint64_t i = 0; i < us; i += 20) {
			usleep(20);
			drain(&in);
		}
		kill(pid, SIGKILL);
	}
	waitpid(pid, NULL, 0);
	drain(&in);
	check_area();
	finished = atomic_load(&stage->n_finished);
	for (int i = 0; i < SEAM_RING_N_LOSSES; i++)
		lost += control->program.n_lost[i];
	/* At most the one that had ended, but was not yet counted as such. */
	if (seen.n_bad == 0 && seen.n_outer + lost >= finished &&
	    (lost > 0 || seen.n_outer <= finished + 1) &&
	    control->program.n_begun >= seen.n_all &&
	    control->program.n_begun - seen.n_all <= MAX_TORN)
		return true;
	printf("# %ju steps: %ju bad; %ju finished, %ju delivered, %ju lost; "
	       "%ju begun, %ju delivered\n", (uintmax_t)steps,
	       (uintmax_t)seen.n_bad, (uintmax_t)finished,
	       (uintmax_t)seen.n_outer, (uintmax_t)lost,
	       (uintmax_t)control->program.n_begun, (uintmax_t)seen.n_all);
	return false;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 200, bad = 0;
	uint64_t x = 0x243f6a8885a308d3, n_torn = 0;

	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stage == MAP_FAILED)
		return 1;
	for (uint64_t i = 0; i < n; i++) {
		struct seam_ring_state *own =
			&((struct seam_ring_control *)stage->memory)->program;

		bad += !try_once(&x);
		n_torn += own->nest > 0;
	}
	printf("# %ju kills, %ju of them inside a writer\n", (uintmax_t)n,
	       (uintmax_t)n_torn);
	printf("%sok 1 - all that was finished is delivered, nothing torn\n",
	       bad ? "not " : "");
	printf("%sok 2 - writers were killed in the middle\n1..2\n",
	       n_torn > n / 20 ? "" : "not ");
	return bad > 0;
}
