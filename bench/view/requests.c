/* SPDX-License-Identifier: MIT */
/*
 * requests.c - some million calls of 60 functions, whose stacks differ
 *
 *	requests N_REQUESTS
 *
 * What bench/view records for a page: two threads handle requests of 300 types,
 * each of which is a path down a tree of functions; now and then one takes
 * another way, or has to wait.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_THREADS = 2, N_KINDS = 6, N_DEPTHS = 10, N_TYPES = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;
static unsigned int n_requests;

struct walk {
	uint64_t random;
	uint64_t path;		/* of the request's type */
};

static uint64_t next_random(struct walk *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

typedef void step_fn(struct walk *w);

static step_fn *const *steps_below(unsigned int depth);

static void work(struct walk *w)
{
	for (unsigned int i = next_random(w) % 20000; i; i--)
		sink += i ^ w->random;
}

static void descend(struct walk *w, unsigned int depth)
{
	step_fn *const *below = steps_below(depth);
	uint64_t kind = w->path >> 3 * depth;

	work(w);
	if (next_random(w) % 64 == 0)
		kind = w->random >> 8;
	if (below)
		below[kind % N_KINDS](w);
}

#define STEP(depth, kind)						\
	static __attribute__((noinline)) void				\
	step_##depth##_##kind(struct walk *w)				\
	{								\
		descend(w, depth);					\
		__asm__ volatile("");	/* no tail call */		\
	}
#define STEPS(d)							\
	STEP(d, 0) STEP(d, 1) STEP(d, 2) STEP(d, 3) STEP(d, 4) STEP(d, 5)
#define NAMES(d)							\
	{ step_##d##_0, step_##d##_1, step_##d##_2, step_##d##_3,	\
	  step_##d##_4, step_##d##_5 }

STEPS(0) STEPS(1) STEPS(2) STEPS(3) STEPS(4)
STEPS(5) STEPS(6) STEPS(7) STEPS(8) STEPS(9)

static step_fn *const steps[N_DEPTHS][N_KINDS] = {
	NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4),
	NAMES(5), NAMES(6), NAMES(7), NAMES(8), NAMES(9),
};

static step_fn *const *steps_below(unsigned int depth)
{
	return depth + 1 < N_DEPTHS ? steps[depth + 1] : NULL;
}

__attribute__((noinline)) static void handle_request(struct walk *w)
{
	if (next_random(w) % 1000 == 0) {
		pthread_mutex_lock(&lock);
		usleep(2000);
		pthread_mutex_unlock(&lock);
	}
	w->path = next_random(w) % N_TYPES * 0x9e3779b97f4a7c15U;
	steps[0][w->path % N_KINDS](w);
	__asm__ volatile("");
}

static void *serve(void *number)
{
	struct walk w = { .random = 88172645463325252U + (uintptr_t)number };

	for (unsigned int i = 0; i < n_requests / N_THREADS; i++)
		handle_request(&w);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];

	n_requests = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, (void *)i))
			return 1;
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
