/* SPDX-License-Identifier: MIT */
/* sleds.c - what unpatched sleds cost in work.c; prints "sleds RATIO" */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t without_work(uint64_t seed);
uint64_t with_work(uint64_t seed);

enum { ROUNDS = 201, CALLS = 2000 };

static double time_of(uint64_t (*work)(uint64_t))
{
	struct timespec a, b;
	uint64_t sum = 1;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < CALLS; i++)
		sum += work(sum);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	__asm__ volatile("" :: "r" (sum));
	return (double)(b.tv_sec - a.tv_sec) * 1e9 +
	       (double)(b.tv_nsec - a.tv_nsec);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static double with[ROUNDS], without[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		with[i] = time_of(with_work);
		without[i] = time_of(without_work);
	}
	qsort(with, ROUNDS, sizeof(double), compare);
	qsort(without, ROUNDS, sizeof(double), compare);
	printf("sleds %.4f\n", with[ROUNDS / 2] / without[ROUNDS / 2]);
	return 0;
}
