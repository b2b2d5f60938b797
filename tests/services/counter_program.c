/* SPDX-License-Identifier: MIT */
/*
 * counter_program.c - the program's side of "counter", to copy from
 *
 *	counter_program HOW THREADS N [stopped]
 *
 * Each of THREADS threads claims a ring and writes the numbers 0 to N - 1,
 * then, as HOW says:
 *
 *	close	closes its ring
 *	brief	ends, without having closed it, before the recorder looks
 *	slow	as close, a number in 20 us or more
 *	kill	begins a record more, and the process kills itself
 *	fork	as close, in a forked child
 *	lie	as slow, but each sample names another event, process and
 *		time
 *	bad	closes it; sizes and types that a reader could not rely on
 *	big	closes it; each record is larger than any may be
 *	none	claims no ring: all numbers are lost
 *	thief	one ring is claimed for a thread of another process
 *	latest, drained: one thread, of the services of latest_service.c
 *
 * With "stopped" the recorder is, while the threads write.
 * Prints "thread NUMBER pid PID tid TID wrote N lost N" for each.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ring/aux_writer.h"
#include "base/clock.h"
#include "counter.h"
#include "ring/link/link.h"
#include "stopped_parent.h"

enum { MAX_THREADS = 64, SLOW_US = 20 };

static struct seam_link_client client;
static const char *how;
static uint64_t n_numbers;

static bool is_how(const char *name)
{
	return strcmp(how, name) == 0;
}

/* One number.  Whether it is in the ring. */
static bool put_number(struct seam_ring_producer *ring, uint32_t thread,
		       uint64_t value)
{
	struct counter_sample sample = {
		.time_ns = seam_clock_ns(), .period = 1,
		.raw_bytes = COUNTER_RAW_BYTES,
		.thread = thread, .value = value,
	};
	size_t size = sizeof(sample);
	uint32_t type = PERF_RECORD_SAMPLE;

	if (is_how("lie"))
		sample.id = value % 4, sample.pid = sample.tid = 1,
		sample.time_ns = value % 2 ? 1 : UINT64_MAX;
	if (is_how("bad") && value % 4)
		sample.raw_bytes = value % 4 == 1 ? UINT32_MAX : 12,
		size -= value % 4 == 2 ? 16 : 0,
		type = value % 4 == 3 ? PERF_RECORD_MMAP2 : type;
	return seam_ring_write(ring, type, PERF_RECORD_MISC_KERNEL, &sample,
			       size) == 0;
}

static void lose_all(void)
{
	for (uint64_t i = 0; i < n_numbers; i++)
		seam_ring_memory_lose(&client.memories[0]);
}

/* Records that are refused, as fast as possible. */
static void refuse_all(struct seam_ring_producer *ring)
{
	struct seam_ring_writer writer;

	for (uint64_t i = 0; i < n_numbers; i++)
		seam_ring_begin(ring, &writer, PERF_RECORD_SAMPLE, 0,
				UINT16_MAX);
}

static void *count(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct seam_ring_writer unfinished;
	struct seam_ring_claim claim;
	uint64_t n = 0;

	/* Thread 1 is never one of ours. */
	if (is_how("none") ||
	    seam_link_client_claim(&client, 0, is_how("thief") ? 1 : tid,
				   &claim)) {
		lose_all();
		return NULL;
	}
	if (is_how("big"))
		refuse_all(&claim.ring);
	for (uint64_t i = 0; !is_how("big") && i < n_numbers; i++) {
		n += put_number(&claim.ring, thread, i);
		if (is_how("slow") || is_how("lie"))
			usleep(SLOW_US);
	}
	printf("thread %u pid %d tid %u wrote %ju lost %ju\n", thread,
	       getpid(), tid, (uintmax_t)n, (uintmax_t)(n_numbers - n));
	if (is_how("kill"))
		seam_ring_begin(&claim.ring, &unfinished, PERF_RECORD_SAMPLE, 0,
				sizeof(struct counter_sample));
	else if (!is_how("brief"))
		seam_ring_memory_close(&client.memories[0], &claim);
	return NULL;
}

static void count_in_threads(uint32_t n)
{
	pthread_t threads[MAX_THREADS];

	for (uintptr_t i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, count, (void *)i))
			exit(1);
	for (uint32_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void count_unseen(uint32_t n)
{
	struct stopped_parent recorder;

	if (!stop_parent(&recorder))
		exit(1);
	count_in_threads(n);
	continue_parent(&recorder);
}

/* Numbers as records and as AUX data. */
static void count_latest(void)
{
	struct seam_ring_claim claim;
	struct aux_writer aux;

	if (seam_link_client_claim(&client, 0, (uint32_t)getpid(), &claim))
		exit(1);
	aux_writer_init(&aux, &claim.ring, claim.aux, claim.aux_bytes,
			is_how("latest"));
	for (uint64_t i = 0; i < n_numbers; i++) {
		seam_ring_write(&claim.ring, PERF_RECORD_SAMPLE, 0, &i,
				sizeof(i));
		aux_write(&aux, &i, sizeof(i));
	}
	seam_ring_memory_close(&client.memories[0], &claim);
}

int main(int argc, char **argv)
{
	const char *address = getenv(SEAM_LINK_VARIABLE), *service;
	uint32_t n_threads;

	if (argc < 4 || argc > 5 || !address)
		return 2;
	how = argv[1];
	n_threads = (uint32_t)strtoul(argv[2], NULL, 10);
	n_numbers = strtoull(argv[3], NULL, 10);
	service = is_how("latest") || is_how("drained") ? how : COUNTER_SERVICE;
	if (n_threads > MAX_THREADS ||
	    seam_link_client_connect(&client, address, service, 5000))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (service == how)
		count_latest();
	else if (argc > 4)
		count_unseen(n_threads);
	else if (!is_how("fork"))
		count_in_threads(n_threads);
	else if (fork() == 0)
		count_in_threads(n_threads);
	else
		wait(NULL);
	if (is_how("kill"))
		raise(SIGKILL);
	return 0;
}
