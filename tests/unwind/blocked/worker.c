/* SPDX-License-Identifier: MIT */
/*
 * worker.c - threads that wait again and again, at random places, and log where
 *
 * 'worker FILE THREADS WAITS US': each thread waits WAITS times, up to US
 * microseconds, with a random stack of the functions left() and right(), whose
 * frames have one size: other stacks of the same depth have the same stack
 * pointer.  FILE gets the addresses of left(), right() and wait_once() and their
 * ends, and of each wait {tid, begin, end, path, depth}: CLOCK_MONOTONIC, and a
 * bit for each call, the innermost last.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

struct wait {
	uint64_t tid, begin, end, path, depth;
};

struct log {
	uint64_t addresses[6];
	struct wait waits[];
};

static struct log *written;
static int n_waits, max_us;
static volatile int sink;

struct state {
	struct wait *wait;
	unsigned seed;
	int us;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

KEEP static void wait_once(struct state *s)
{
	struct timespec t = { 0, s->us * 1000 };

	s->wait->begin = now_ns();
	nanosleep(&t, NULL);
	s->wait->end = now_ns();
	sink++;
}

static void call(struct state *s, int depth);

KEEP static void left(struct state *s, int depth)
{
	volatile int x[8];

	x[0] = depth;
	call(s, depth);
	sink += x[0];
}

KEEP static void right(struct state *s, int depth)
{
	volatile int x[8];

	x[0] = depth + 1;
	call(s, depth);
	sink -= x[0];
}

/* In each of the two. */
__attribute__((always_inline)) static inline void call(struct state *s,
						       int depth)
{
	if (depth == 0)
		wait_once(s);
	else if (s->wait->path >> (depth - 1) & 1)
		right(s, depth - 1);
	else
		left(s, depth - 1);
	sink++;
}

static void *run(void *argument)
{
	uint64_t number = (uint64_t)argument;
	struct state s = { .seed = (unsigned)number + 1 };

	for (int i = 0; i < n_waits; i++) {
		int depth = 1 + rand_r(&s.seed) % 12;

		s.wait = &written->waits[number * (uint64_t)n_waits +
					 (uint64_t)i];
		s.wait->tid = (uint64_t)syscall(SYS_gettid);
		s.wait->depth = (uint64_t)depth;
		s.wait->path = (uint64_t)rand_r(&s.seed) &
			       ((1u << depth) - 1);
		s.us = 1 + rand_r(&s.seed) % max_us;
		call(&s, depth);
	}
	return NULL;
}

/* The end of a function is the next one's begin, or near enough. */
static void take(int i, void *begin)
{
	written->addresses[2 * i] = (uint64_t)begin;
	written->addresses[2 * i + 1] = (uint64_t)begin + 0x100;
}

int main(int argc, char **argv)
{
	int n_threads = argc == 5 ? atoi(argv[2]) : 0;
	pthread_t threads[64];
	size_t size;
	int fd;

	if (n_threads < 1 || n_threads > 64)
		return 2;
	n_waits = atoi(argv[3]);
	max_us = atoi(argv[4]);
	size = sizeof(*written) + (size_t)n_threads * (size_t)n_waits *
	       sizeof(struct wait);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return 1;
	written = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (written == MAP_FAILED)
		return 1;
	take(0, (void *)left);
	take(1, (void *)right);
	take(2, (void *)wait_once);
	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, run, (void *)(uint64_t)i);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
