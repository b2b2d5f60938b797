/* SPDX-License-Identifier: MIT */
/*
 * stream_target.c - programs with a JIT, as the tests of streams need them
 *
 *	stream_target MODE [N]
 *
 *	load N		load N functions and close
 *	kill N		load N functions and die
 *	flood N		load N and close, while the recorder, our parent, is
 *			stopped
 *	flood-kill N	the same, and die in place of closing
 *	fork N		load N, unload the first, move the second; a child
 *			that closed all descriptors loads one and exits
 *	many N		N children, each of which loads one and exits at once
 *	busy-many N	the same, while a thread loads one after another
 *	exec N		load N, and become "load N"
 *	reopen N	load N, close, open, load N
 *	churn N		load and unload N, in all more than fits anywhere
 *	keep N		load N, and more than that is freed again among them;
 *			a child loads one
 *	no-memory N	load one; a child that gets no more memory loads one,
 *			and one that it has no room for, and closes; load N
 *	closed-ring N	load N, find the ring closed, load N
 *	two-dumps N	run "streamed" N times, and "filed", which is in a dump
 *			of its own in the folder where we are
 *	big N		load one of N bytes and a small one, and see them off
 *	hold N		load N, print, wait for a line, load N more
 *	hostile N	get a ring, and fill it with rubbish N times
 *
 * Prints "pid PID offered N lost N path PATH", a line for each process.
 */
#include <seam/jitdump.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/jit/jitdump.h"
#include "ring/link/link.h"
#include "traced/jit/writer.h"

static uint64_t n_offered;

static struct seam_jitdump *open_dump(void)
{
	struct seam_jitdump *dump;

	if (seam_jitdump_open(&dump, NULL))
		exit(1);
	return dump;
}

static uint64_t load(struct seam_jitdump *dump, const char *kind, uint64_t i)
{
	static const uint8_t bytes[64];
	char name[64];
	struct seam_jitdump_code code = {
		.name = name, .bytes = bytes, .size = sizeof(bytes),
		.addr = 0x100000 + i * sizeof(bytes),
	};

	snprintf(name, sizeof(name), "%s_%d_%ju", kind, getpid(),
		 (uintmax_t)i);
	seam_jitdump_load(dump, &code, 1);
	n_offered++;
	return code.id;
}

static void load_all(struct seam_jitdump *dump, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		load(dump, "f", i);
}

static void print(struct seam_jitdump *dump)
{
	printf("pid %d offered %ju lost %ju path %s\n", getpid(),
	       (uintmax_t)n_offered, (uintmax_t)seam_jitdump_lost(dump),
	       seam_jitdump_path(dump));
	fflush(stdout);
}

static void run_fork(struct seam_jitdump *dump, uint64_t n)
{
	uint64_t first = load(dump, "gone", 1000), second = load(dump, "moved",
								1001);

	load_all(dump, n);
	seam_jitdump_unload(dump, first);
	seam_jitdump_move(dump, second, 0x900000);
	n_offered++;
	print(dump);
	if (fork() == 0) {
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		n_offered = n + 1;	/* what it inherits */
		load(dump, "child", 2000);
		print(dump);
		_exit(0);
	}
	wait(NULL);
}

/* The recorder is stopped, so the ring is full. */
static void run_flood(struct seam_jitdump *dump, int is_killed)
{
	print(dump);
	if (!is_killed)
		seam_jitdump_close(dump);
	kill(getppid(), SIGCONT);
	if (is_killed)
		raise(SIGKILL);
	exit(0);
}

static void run_many(struct seam_jitdump *dump, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (fork() == 0) {
			load(dump, "child", i);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	print(dump);
}

static atomic_bool is_over;

static void *load_until_over(void *dump)
{
	for (uint64_t i = 0; !is_over; i = (i + 1) % 1000)
		seam_jitdump_unload(dump, load(dump, "busy", i));
	return NULL;
}

static void run_busy_many(struct seam_jitdump *dump, uint64_t n)
{
	pthread_t thread;

	load(dump, "stays", 0);
	pthread_create(&thread, NULL, load_until_over, dump);
	run_many(dump, n);
	is_over = true;
	pthread_join(thread, NULL);
}

static void run_churn(struct seam_jitdump *dump, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		seam_jitdump_unload(dump, load(dump, "f", i % 1000));
	print(dump);
}

static void run_keep(struct seam_jitdump *dump, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		load(dump, "live", i);
		for (int k = 0; k < 50; k++)
			seam_jitdump_unload(dump, load(dump, "f", 5000));
	}
	print(dump);
	/* The child hands on what its parent could not. */
	if (fork() == 0) {
		load(dump, "child", 0);
		while (seam_jitdump_flush(dump) == -ENOBUFS)
			sched_yield();
		print(dump);
		_exit(0);
	}
	wait(NULL);
}

static void run_no_memory(struct seam_jitdump *dump, uint64_t n)
{
	static const uint8_t bytes[1 << 20];
	struct seam_jitdump_code large = {
		.name = "large", .bytes = bytes, .size = sizeof(bytes),
	};
	struct rlimit none = { 0 };

	load(dump, "first", 0);
	if (fork() == 0) {
		setrlimit(RLIMIT_AS, &none);
		load(dump, "child", 0);
		if (seam_jitdump_load(dump, &large, 1) != -ENOMEM)
			_exit(1);
		seam_jitdump_close(dump);
		_exit(0);
	}
	wait(NULL);
	load_all(dump, n);
	print(dump);
}

/* As any process that has mapped the memory can. */
static void run_closed_ring(struct seam_jitdump *dump, uint64_t n)
{
	load_all(dump, n);
	seam_ring_memory_close(&dump->client.memories[0], &dump->own->claim);
	load_all(dump, n);
	print(dump);
}

/* Count down from some 10^8; nothing on other machines. */
#if defined(__x86_64__)
static const uint8_t countdown[] = {
	0xb9, 0, 0, 0, 8, 0xff, 0xc9, 0x75, 0xfc, 0xc3,
};
#elif defined(__aarch64__)
static const uint32_t countdown[] = {
	0x52a10000, 0x71000400, 0x54ffffe1, 0xd65f03c0,
};
#else
static const uint8_t countdown[1];
#endif

/* Load countdown as @name at @page, and run it @n times. */
static void run_code(struct seam_jitdump *dump, const char *name,
		     uint8_t *page, uint64_t n)
{
	struct seam_jitdump_code code = {
		.name = name, .bytes = page, .size = sizeof(countdown),
	};
	void (*run)(void);

	memcpy(page, countdown, sizeof(countdown));
	__builtin___clear_cache((char *)page, (char *)page +
				sizeof(countdown));
	memcpy(&run, &page, sizeof(page));
	seam_jitdump_load(dump, &code, 1);
	while (sizeof(countdown) > 1 && n--)
		run();
}

static void run_two_dumps(struct seam_jitdump *dump, uint64_t n)
{
	struct seam_jitdump_options here = { .folder = "." };
	struct seam_jitdump *second;
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || seam_jitdump_open(&second, &here))
		exit(1);
	run_code(dump, "streamed", pages, n);
	run_code(second, "filed", pages + 4096, n);
	n_offered = 1;
	print(dump);
	print(second);
	seam_jitdump_close(second);
}

static void run_big(struct seam_jitdump *dump, uint64_t n)
{
	uint8_t *bytes = malloc(n);
	struct seam_jitdump_code codes[] = {
		{ .name = "big", .bytes = bytes, .size = n, .addr = 0x10000 },
		{ .name = "small", .bytes = bytes, .size = 1, .addr = 0x1000 },
	};

	for (uint64_t i = 0; bytes && i < n; i++)
		bytes[i] = (uint8_t)(i * 7 % 251);
	seam_jitdump_load(dump, codes, 2);
	free(bytes);
	while (seam_jitdump_flush(dump) == -ENOBUFS)
		sched_yield();
	n_offered = 2;
	print(dump);
}

static uint32_t random_number(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 32);
}

/* Rubbish, half of it in chunks and in records that begin well. */
static void run_hostile(uint64_t n)
{
	static uint8_t payload[4096];
	struct seam_link_client c;
	struct seam_ring_claim claim;

	if (seam_link_client_connect(&c, getenv(SEAM_LINK_VARIABLE), "jit",
				     5000) ||
	    seam_link_client_claim(&c, 0, (uint32_t)getpid(), &claim))
		exit(1);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t head[6] = {
			random_number() % 4, random_number() % 4096,
			random_number() % 6, random_number() % 300,
			random_number(), random_number(),
		};

		for (size_t k = 0; k < sizeof(payload); k++)
			payload[k] = (uint8_t)random_number();
		memcpy(payload, head, sizeof(head));
		seam_ring_write(&claim.ring, i % 2 ? PERF_RECORD_SAMPLE :
				random_number() % 24, 0, payload,
				random_number() % sizeof(payload));
		if (i > n / 2 && i % 64 == 63) {
			atomic_store(&claim.ring.control->data_head,
				     random_number());
			usleep(100);
		}
	}
	atomic_store(&claim.ring.control->program.n_offered, 7);
	printf("hostile %d\n", getpid());
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	struct seam_jitdump *dump;

	if (!strcmp(mode, "hostile")) {
		run_hostile(n);
		return 0;
	}
	dump = open_dump();
	if (!strncmp(mode, "flood", 5))
		kill(getppid(), SIGSTOP);
	if (!strcmp(mode, "fork"))
		run_fork(dump, n);
	else if (!strcmp(mode, "many"))
		run_many(dump, n);
	else if (!strcmp(mode, "busy-many"))
		run_busy_many(dump, n);
	else if (!strcmp(mode, "churn"))
		run_churn(dump, n);
	else if (!strcmp(mode, "keep"))
		run_keep(dump, n);
	else if (!strcmp(mode, "no-memory"))
		run_no_memory(dump, n);
	else if (!strcmp(mode, "closed-ring"))
		run_closed_ring(dump, n);
	else if (!strcmp(mode, "two-dumps"))
		run_two_dumps(dump, n);
	else if (!strcmp(mode, "big"))
		run_big(dump, n);
	else
		load_all(dump, n);
	if (!strcmp(mode, "load") || !strcmp(mode, "kill"))
		print(dump);
	if (!strncmp(mode, "flood", 5))
		run_flood(dump, !strcmp(mode, "flood-kill"));
	if (!strcmp(mode, "hold")) {
		print(dump);
		(void)!getchar();
		load_all(dump, n);
		print(dump);
	}
	if (!strcmp(mode, "kill"))
		raise(SIGKILL);
	if (!strcmp(mode, "exec"))
		execl(argv[0], argv[0], "load", argv[2], (char *)NULL);
	if (!strcmp(mode, "reopen")) {
		seam_jitdump_close(dump);
		dump = open_dump();
		load_all(dump, n);
		print(dump);
	}
	seam_jitdump_close(dump);
	return 0;
}
