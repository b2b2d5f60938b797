/* SPDX-License-Identifier: MIT */
/*
 * server.c - a server that is slow, and no function of it is
 *
 *	cc -O2 -g -pthread server.c -o server
 *	seam record --off-cpu -o server.seam -- ./server
 *
 * Three workers take requests from a pipe.  Each request is parsed, and then
 * committed under one lock, which is held during a write to a slow place.  The
 * main thread hands out requests and flushes a log to disk.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_WORKERS = 3, N_REQUESTS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int requests[2];
static volatile unsigned long sum;

static void parse(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 1000; i++)
			sum += (unsigned long)i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000 +
		 (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static void send_to_replica(void)
{
	const struct timespec round_trip = { 0, 3000000 };

	nanosleep(&round_trip, NULL);
}

static void commit(void)
{
	pthread_mutex_lock(&lock);
	parse(2000);
	send_to_replica();
	pthread_mutex_unlock(&lock);
}

static void serve(void)
{
	parse(3000);
	commit();
}

static void *worker(void *unused)
{
	char request;

	while (read(requests[0], &request, 1) == 1 && request != 'q')
		serve();
	return unused;
}

static void flush_log(int fd)
{
	char line[512];

	memset(line, '.', sizeof(line));
	if (write(fd, line, sizeof(line)) < 0)
		abort();
	fdatasync(fd);
}

int main(void)
{
	pthread_t workers[N_WORKERS];
	int fd = open("server.log", O_CREAT | O_WRONLY | O_TRUNC, 0600);

	if (fd < 0 || pipe(requests))
		return 1;
	for (int i = 0; i < N_WORKERS; i++)
		pthread_create(&workers[i], NULL, worker, NULL);
	for (int i = 0; i < N_REQUESTS + N_WORKERS; i++) {
		if (write(requests[1], i < N_REQUESTS ? "r" : "q", 1) != 1)
			return 1;
		if (i < N_REQUESTS)
			flush_log(fd);
	}
	for (int i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i], NULL);
	return unlink("server.log");
}
