/* SPDX-License-Identifier: MIT */
/*
 * deep.c - a program with deep, varied stacks, to record for benchmarks
 *
 *	deep SECONDS [THREADS]
 *
 * Each call goes down one of 64 paths through twelve functions, about 22
 * frames deep, and works at the end for a moment.  Compiled with frame
 * pointers, so that every tool sees the same stacks.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define N_FUNCTIONS 12
typedef uint64_t step(uint64_t path, int depth);
static step *const steps[N_FUNCTIONS];

__attribute__((noinline)) static uint64_t work(uint64_t x)
{
	for (int i = 0; i < 2000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

static uint64_t down(uint64_t path, int depth)
{
	uint64_t next = path * 2654435761u + (uint64_t)depth;

	if (depth == 0)
		return work(path);
	return steps[(next >> 8) % N_FUNCTIONS](path, depth - 1) + 1;
}

#define STEP(n)								\
	__attribute__((noinline))					\
	static uint64_t step_##n(uint64_t path, int depth)		\
	{								\
		return down(path + 64 * n, depth) ^ n;			\
	}

STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5)
STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)

static step *const steps[N_FUNCTIONS] = {
	step_0, step_1, step_2, step_3, step_4, step_5,
	step_6, step_7, step_8, step_9, step_10, step_11,
};

static uint64_t end_ns;		/* written before the threads start */

static void *run(void *arg)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; now_ns() < end_ns; i++)
		sum += steps[i % N_FUNCTIONS](i % 64, 8 + (int)(i % 4));
	*(volatile uint64_t *)arg = sum;
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int n = argc > 2 ? atoi(argv[2]) : 2;
	pthread_t threads[64];
	uint64_t sums[64];

	if (n < 1 || n > 64)
		return 2;
	end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, &sums[i]))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
