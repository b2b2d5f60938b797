/* SPDX-License-Identifier: MIT */
/*
 * forger.c - a program that names code of other processes, and forges counts
 *
 *	forger before	claim a ring for a child that was forked before we
 *			connected, and has executed another program
 *	forger exec	connect, leave the rings to a child, and execute
 *			another program; the child claims one for us
 *	forger keeps	the same, but the ring was ours before
 *	forger own	name code of our own
 *	forger count	count 2^63 pieces, and others without a ring
 *	forger victim	the other program: unnamed code, for half a second
 *
 * The name for code of another process is FORGED.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/link/link.h"
#include "wire/jit/jitdump.h"

#define PAGE_ADDR UINT64_C(0x700000000000)

enum { PAGE_BYTES = 4096, VICTIM_MS = 500 };

/* Count down from a million; nothing on other machines. */
#if defined(__x86_64__)
static const uint8_t countdown[] = {
	0xb9, 0x40, 0x42, 0x0f, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3,
};
#else
static const uint32_t countdown[] = {
	0x52a00200, 0x71000400, 0x54ffffe1, 0xd65f03c0,
};
#endif

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void run_code(void)
{
	void *page = mmap((void *)PAGE_ADDR, PAGE_BYTES,
			  PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	uint64_t end = cpu_ms() + VICTIM_MS;
	void (*run)(void);

	if (page == MAP_FAILED)
		exit(1);
	memcpy(page, countdown, sizeof(countdown));
	__builtin___clear_cache(page, (char *)page + sizeof(countdown));
	memcpy(&run, &page, sizeof(page));
	while (cpu_ms() < end)
		run();
}

static void become_victim(const char *self)
{
	execl(self, self, "victim", (char *)NULL);
	_exit(9);
}

static uint8_t *put(uint8_t *to, uint64_t v, size_t size)
{
	memcpy(to, &v, size);
	return to + size;
}

/* One piece of code, the whole page, as process @pid. */
static void send_load(struct seam_ring_claim *claim, const char *name,
		      uint32_t pid)
{
	static uint8_t payload[8192];
	size_t name_bytes = strlen(name) + 1, code = PAGE_BYTES;
	size_t size = 56 + name_bytes + code;
	uint8_t *p = payload;

	p = put(p, SEAM_JIT_CHUNK_FIRST | SEAM_JIT_CHUNK_LAST, 4);
	p = put(p, size, 4);
	p = put(p, SEAM_JITDUMP_LOAD, 4);
	p = put(p, size, 4);
	p = put(p, seam_clock_ns(), 8);
	p = put(p, pid, 4);
	p = put(p, pid, 4);
	p = put(p, PAGE_ADDR, 8);
	p = put(p, PAGE_ADDR, 8);
	p = put(p, code, 8);
	p = put(p, 1, 8);
	memcpy(p, name, name_bytes);
	seam_ring_write(&claim->ring, PERF_RECORD_SAMPLE, 0, payload, 8 + size);
}

static void connect_to_recorder(struct seam_link_client *c)
{
	const char *address = getenv(SEAM_LINK_VARIABLE);

	if (!address || seam_link_client_connect(c, address, "jit", 5000)) {
		puts("not connected");
		exit(1);
	}
}

static void claim_as(struct seam_link_client *c, uint32_t pid,
		     struct seam_ring_claim *claim)
{
	if (seam_link_client_claim(c, 0, pid, claim))
		exit(1);
}

/* Through the victim's whole life: the recorder looks at any moment. */
static void forge(struct seam_ring_claim *claim, pid_t victim)
{
	for (int i = 0; i < 60; i++) {
		send_load(claim, "FORGED", (uint32_t)victim);
		usleep(20000);
	}
}

static void forge_before(const char *self)
{
	struct seam_ring_claim claim;
	struct seam_link_client c;
	int start[2];
	pid_t child;
	char byte;

	if (pipe(start))
		exit(1);
	child = fork();
	if (child == 0) {
		(void)!read(start[0], &byte, 1);
		become_victim(self);
	}
	connect_to_recorder(&c);
	claim_as(&c, (uint32_t)child, &claim);
	(void)!write(start[1], "", 1);
	forge(&claim, child);
	waitpid(child, NULL, 0);
}

/* @is_ours: the ring was claimed before, and the recorder has seen it. */
static void forge_after_exec(const char *self, bool is_ours)
{
	struct seam_ring_claim claim;
	struct seam_link_client c;
	pid_t victim = getpid();

	connect_to_recorder(&c);
	if (is_ours) {
		claim_as(&c, (uint32_t)victim, &claim);
		send_load(&claim, "honest", (uint32_t)victim);
		usleep(300000);
	}
	if (fork() == 0) {
		usleep(50000);
		if (!is_ours)
			claim_as(&c, (uint32_t)victim, &claim);
		forge(&claim, victim);
		_exit(0);
	}
	become_victim(self);
}

static void name_own(void)
{
	struct seam_ring_claim claim;
	struct seam_link_client c;

	connect_to_recorder(&c);
	claim_as(&c, (uint32_t)getpid(), &claim);
	send_load(&claim, "honest", (uint32_t)getpid());
	run_code();
}

static void count_wrong(void)
{
	struct seam_ring_claim claim;
	struct seam_link_client c;

	connect_to_recorder(&c);
	claim_as(&c, (uint32_t)getpid(), &claim);
	send_load(&claim, "honest", (uint32_t)getpid());
	atomic_store(&claim.ring.control->program.n_offered,
		     UINT64_C(12722253223969686284));
	atomic_store(&c.memories[0].head->n_lost, UINT64_MAX - 5);
	atomic_store(&c.memories[0].head->n_unclaimed, UINT64_MAX);
	usleep(300000);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "victim"))
		run_code();
	else if (!strcmp(mode, "before"))
		forge_before(argv[0]);
	else if (!strcmp(mode, "exec"))
		forge_after_exec(argv[0], false);
	else if (!strcmp(mode, "keeps"))
		forge_after_exec(argv[0], true);
	else if (!strcmp(mode, "own"))
		name_own();
	else if (!strcmp(mode, "count"))
		count_wrong();
	return 0;
}
