/* SPDX-License-Identifier: MIT */
/*
 * gen_xray.c - a large FDR log for benchmarks
 *
 *	gen_xray MEGABYTES FILE [THREADS [loop|walk]]
 *
 * Threads of one process (4) each run over 40 functions.  In the loop,
 * function f calls 2f once and 2f + 1 twice, as far as there are such, which
 * a CPU learns to predict; the walk goes up or down by a toss and calls any
 * function, which none can.  One record in eight comes late.  Buffers of
 * 64 KiB are interleaved as a ring would leave them.  The same arguments
 * give the same bytes on every machine.
 */
#include "wire/xray/xray_write.h"

#include <stdlib.h>

enum {
	MAX_THREADS = 64,
	N_FUNCTIONS = 40,
	MAX_DEPTH = 24,
	BUFFER_BYTES = 64 * 1024,
};

#define FREQUENCY_HZ UINT64_C(2596118000)

struct frame {
	uint32_t function;
	unsigned int n_called;		/* of its 3 calls */
};

struct thread {
	struct frame stack[MAX_DEPTH];
	unsigned int depth;
	uint64_t tsc;
	uint64_t random;
	bool walks;
};

static uint64_t next_random(struct thread *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

/* What the function on top calls next; 0 when it returns. */
static uint32_t next_callee(struct thread *t)
{
	struct frame *top;
	uint32_t callee;

	if (t->depth == 0)
		return 1;
	if (t->walks)
		return t->depth < MAX_DEPTH && (t->random >> 20 & 1) ?
		       1 + (uint32_t)(t->random >> 24) % N_FUNCTIONS : 0;
	top = &t->stack[t->depth - 1];
	callee = 2 * top->function + (top->n_called > 0);
	return top->n_called++ < 3 && callee <= N_FUNCTIONS ? callee : 0;
}

static void one_record(struct seam_xray_writer *w, struct thread *t,
		       uint16_t cpu)
{
	uint64_t r = next_random(t);
	uint32_t callee = next_callee(t);

	t->tsc += 40 + (r & 63) + ((r >> 8 & 7) == 0 ? r >> 40 & 0xffff : 0);
	if (callee)
		t->stack[t->depth++] = (struct frame) { .function = callee };
	seam_xray_writer_put(w, &(struct seam_xray_event) {
		.kind = callee ? SEAM_XRAY_ENTRY : SEAM_XRAY_EXIT,
		.function = callee ? callee : t->stack[--t->depth].function,
		.tsc = t->tsc, .cpu = cpu,
	}, NULL);
}

static int write_log(FILE *out, uint64_t n_blocks, unsigned int n_threads,
		     bool walks)
{
	struct thread threads[MAX_THREADS] = { 0 };
	struct seam_xray_writer w;
	struct seam_err err = { 0 };
	int r;

	for (unsigned int i = 0; i < n_threads; i++) {
		threads[i].walks = walks;
		threads[i].random = 88172645463325252u + i;
		threads[i].tsc = UINT64_C(2452637726115) + i;
	}
	seam_xray_writer_init(&w, out, FREQUENCY_HZ, BUFFER_BYTES);
	for (uint64_t b = 0; b < n_blocks; b++) {
		unsigned int i = (unsigned int)(b % n_threads);
		uint16_t cpu = (uint16_t)(i % 2);
		/* seconds and microseconds both grow, for llvm-xray's sort */
		struct seam_xray_block_start start = {
			.pid = 4000, .tid = (int32_t)(4000 + i), .cpu = cpu,
			.wall_ns = (1000 + b) * 1000000000 + b * 1000,
			.tsc = threads[i].tsc,
		};

		seam_xray_writer_block(&w, &start);
		while (w.block.n + 8 <= BUFFER_BYTES)
			one_record(&w, &threads[i], cpu);
	}
	r = seam_xray_writer_end(&w, &err);
	if (r)
		seam_err_print(stderr, "gen_xray", &err);
	return r;
}

int main(int argc, char **argv)
{
	FILE *out = argc >= 3 && argc <= 5 ? fopen(argv[2], "wb") : NULL;
	unsigned long n = argc > 3 ? strtoul(argv[3], NULL, 10) : 4;
	int r;

	if (!out || n == 0 || n > MAX_THREADS) {
		fprintf(stderr, "usage: gen_xray MEGABYTES FILE "
			"[THREADS [loop|walk]]\n");
		return 2;
	}
	r = write_log(out, strtoull(argv[1], NULL, 10) * 16, (unsigned int)n,
		      argc > 4 && strcmp(argv[4], "walk") == 0);
	return fclose(out) || r ? 1 : 0;
}
