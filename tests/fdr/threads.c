/* SPDX-License-Identifier: MIT */
/*
 * threads.c - areas and the threads that record into them
 *
 * The source of areas is a table of a few slots in shared memory, as the
 * recorder's rings are; each area is read when it is closed.  Prints TAP.
 *
 * usage: threads plain|checked [none: rseq is refused]
 */
#include "area_walk.h"
#include "patcher.h"

#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/system.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIDDEN __attribute__((xray_never_instrument))
#define SHOWN __attribute__((xray_always_instrument, noinline))

enum {
	N_SLOTS = 8,
	AREA = 4 * SEAM_XRAY_CHUNK_BYTES,
	CHUNK_CALLS = (SEAM_XRAY_CHUNK_BYTES - SEAM_XRAY_PREAMBLE_BYTES) / 8,
};

struct slot {
	_Atomic uint32_t tid;		/* 0: free */
	_Atomic uint64_t cursor, reserved, tail, n_lost;
	uint64_t start;			/* of this owner */
	uint8_t bytes[AREA];
};

struct shared {
	struct slot slots[N_SLOTS];
	_Atomic uint64_t n_slots;	/* that may be claimed */
	_Atomic uint64_t n_lost, n_claims, n_closed, n_records, n_bad;
	_Atomic uint64_t n_cpus, n_wraps, n_marked;
	_Atomic uint32_t last_pid, last_tid;
};

static struct shared *shared;
static int n_tests;
static bool failed;

SHOWN void leaf(void)
{
	__asm__ volatile("");
}

HIDDEN static void call(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		leaf();
}

HIDDEN static void ok(bool good, const char *promise)
{
	failed |= !good;
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++n_tests, promise);
	if (!good)
		printf("# lost %llu, claims %llu, closed %llu, records %llu, "
		       "bad %llu\n", (unsigned long long)shared->n_lost,
		       (unsigned long long)shared->n_claims,
		       (unsigned long long)shared->n_closed,
		       (unsigned long long)shared->n_records,
		       (unsigned long long)shared->n_bad);
	fflush(stdout);
}

/* What @slot holds of its owner into the counts; its records so far. */
HIDDEN static uint64_t account(struct slot *slot)
{
	struct walk w = {
		.area = slot->bytes, .mask = AREA - 1, .at = slot->start,
		.end = slot->cursor,
	};
	uint64_t n = 0, last = 0;
	struct walk_record r;
	/* a call begins and ends, in turn */
	enum seam_xray_kind next = SEAM_XRAY_ENTRY;

	while (walk_next(&w, &r)) {
		if (r.kind == SEAM_XRAY_TYPED && r.type == SEAM_XRAY_LOST) {
			shared->n_marked += seam_u64_at(r.payload);
			next = SEAM_XRAY_ENTRY;
			continue;
		}
		shared->n_bad += r.kind != next || r.tsc < last;
		next = r.kind == SEAM_XRAY_ENTRY ? SEAM_XRAY_EXIT :
						   SEAM_XRAY_ENTRY;
		last = r.tsc;
		n++;
	}
	if (w.problem)
		printf("# %s at %llu\n", w.problem, (unsigned long long)w.at);
	shared->n_bad += w.problem != NULL ||
			 (n && w.tid != slot->tid);
	shared->n_cpus += w.n_cpu;
	shared->n_wraps += w.n_wrap;
	shared->last_pid = w.pid;
	shared->last_tid = w.tid;
	return n;
}

HIDDEN static int claim(uint32_t tid, struct seam_fdr_area *area)
{
	for (uint32_t i = 0; i < shared->n_slots; i++) {
		struct slot *slot = &shared->slots[i];
		uint32_t nobody = 0;

		if (!atomic_compare_exchange_strong(&slot->tid, &nobody, tid))
			continue;
		slot->cursor = (slot->cursor + SEAM_XRAY_CHUNK_BYTES - 1) /
			       SEAM_XRAY_CHUNK_BYTES * SEAM_XRAY_CHUNK_BYTES;
		slot->start = slot->cursor;
		slot->tail = slot->reserved = slot->start;
		*area = (struct seam_fdr_area) {
			.bytes = slot->bytes, .size = AREA,
			.cursor = &slot->cursor, .reserved = &slot->reserved,
			.tail = &slot->tail, .n_lost = &slot->n_lost, .slot = i,
		};
		shared->n_claims++;
		return 0;
	}
	return -ENOSPC;
}

/* As where a source's write() is the program's, with a sled. */
static bool calls_at_close;

HIDDEN static void close_area(struct seam_fdr_area *area)
{
	struct slot *slot = &shared->slots[area->slot];

	shared->n_bad += slot->tid !=
			 (uint32_t)seam_fdr_syscall4(SYS_gettid, 0, 0, 0, 0);
	shared->n_records += account(slot);
	shared->n_closed++;
	slot->tid = 0;
	if (calls_at_close)
		call(1);
}

static const struct seam_fdr_source source = {
	.claim = claim, .close = close_area,
};

/* All counts as at the start, and no area. */
HIDDEN static void begin(uint64_t n_slots)
{
	seam_fdr_thread_end();
	shared->n_slots = n_slots;
	shared->n_lost = shared->n_claims = shared->n_closed = 0;
	shared->n_records = shared->n_bad = shared->n_cpus = 0;
	shared->n_wraps = 0;
	for (int i = 0; i < N_SLOTS; i++) {
		shared->slots[i].tid = 0;
		shared->slots[i].n_lost = 0;
	}
}

HIDDEN static struct slot *mine(void)
{
	return &shared->slots[seam_fdr_self.state->area.slot];
}

/* Records of the program so far: those that were lost are not among them. */
HIDDEN static bool is_whole(uint64_t records)
{
	seam_fdr_thread_end();
	return shared->n_records == records && !shared->n_bad;
}

HIDDEN static void migration(void)
{
	cpu_set_t all, one;
	int n = 0, wrong = 0, cpus[2] = { -1, -1 };

	begin(1);
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &all))
			cpus[n++] = i;
	if (n < 2) {
		printf("ok %d - a migration gives a NewCPUId # SKIP one CPU\n",
		       ++n_tests);
		return;
	}
	for (int i = 0; i < 200; i++) {
		const struct seam_fdr_state *state;

		CPU_ZERO(&one);
		CPU_SET(cpus[i % 2], &one);
		sched_setaffinity(0, sizeof(one), &one);
		leaf();
		state = seam_fdr_self.state;
		wrong += state->cpu != (uint32_t)cpus[i % 2];
	}
	sched_setaffinity(0, sizeof(all), &all);
	/* the first CPU is in the preamble; the last change has no record */
	ok(is_whole(400) && !wrong && shared->n_cpus == 199,
	   "each of 199 migrations gives a NewCPUId");
}

HIDDEN static void pause_of(uint64_t ticks)
{
	uint64_t end = seam_fdr_tsc() + ticks;

	while (seam_fdr_tsc() < end)
		usleep(20000);
}

HIDDEN static void long_pause(void)
{
	begin(1);
	call(10);
	pause_of((UINT64_C(1) << 32) + 1000);
	call(10);
	ok(is_whole(40) && shared->n_wraps + shared->n_cpus >= 1 &&
	   shared->n_wraps <= 1, "a pause of 2^32 ticks gives a TSCWrap");
}

/* The stack of a thread in small_stack(). */
HIDDEN static void *short_thread(void *argument)
{
	(void)argument;
	call(50);
	return NULL;
}

HIDDEN static void many_threads(void)
{
	enum { N = 4000, AT_ONCE = 4 };
	pthread_t threads[AT_ONCE];

	begin(N_SLOTS);
	for (int i = 0; i < N / AT_ONCE; i++) {
		for (int t = 0; t < AT_ONCE; t++)
			pthread_create(&threads[t], NULL, short_thread, NULL);
		for (int t = 0; t < AT_ONCE; t++)
			pthread_join(threads[t], NULL);
	}
	ok(is_whole(100 * N) && !shared->n_lost && shared->n_claims == N &&
	   shared->n_closed == N,
	   "4,000 short threads share 8 areas, and lose no record");
}

HIDDEN static void handler(int signal)
{
	(void)signal;
	leaf();
}

HIDDEN static void *interrupted_thread(void *argument)
{
	(void)argument;
	/* its first record is made in the handler */
	raise(SIGUSR1);
	call(10000);
	raise(SIGUSR1);
	return NULL;
}

HIDDEN static void small_stack(void)
{
	static uint8_t stack[16 << 10] __attribute__((aligned(4096)));
	pthread_attr_t attr;
	pthread_t thread;

	begin(1);
	signal(SIGUSR1, handler);
	pthread_attr_init(&attr);
	/* glibc wants more where signal frames are large; ours is enough */
	if (pthread_attr_setstack(&attr, stack, sizeof(stack)) ||
	    pthread_create(&thread, &attr, interrupted_thread, NULL)) {
		ok(false, "a thread with a stack of 16 KiB");
		return;
	}
	pthread_join(thread, NULL);
	ok(is_whole(20004), "a thread with a stack of 16 KiB, and its handler");
}

HIDDEN static void late_destructor(void *unused)
{
	(void)unused;
	call(7);
}

HIDDEN static void *thread_with_key(void *key)
{
	pthread_setspecific(*(pthread_key_t *)key, key);
	call(5);
	return NULL;
}

HIDDEN static void destructors(void)
{
	pthread_key_t key;
	pthread_t thread;

	begin(1);
	/* after ours, which has a lower number */
	pthread_key_create(&key, late_destructor);
	pthread_create(&thread, NULL, thread_with_key, &key);
	pthread_join(thread, NULL);
	pthread_key_delete(key);
	ok(is_whole(24) && shared->n_claims == 2 && shared->n_closed == 2,
	   "a destructor's calls after the area was closed get another");
}

HIDDEN static void closing(void)
{
	uint64_t end;

	begin(2);
	call(20);
	end = mine()->cursor;
	calls_at_close = true;
	seam_fdr_thread_end();
	calls_at_close = false;
	ok(shared->n_records == 40 && shared->n_lost == 2 &&
	   shared->n_claims == 1 && shared->slots[0].cursor == end,
	   "nothing is written to an area that is being closed");
}

HIDDEN static int child_of(pid_t (*make)(void), bool records)
{
	int status;
	pid_t child = make();

	if (child == 0) {
		if (records)
			call(30);
		_exit(seam_fdr_self.state->pid != (uint32_t)getpid());
	}
	waitpid(child, &status, 0);
	return status;
}

HIDDEN static void forks(void)
{
	uint64_t before, child_records;
	struct slot *slot;
	int status;

	begin(2);
	call(20);
	slot = mine();
	before = slot->cursor;
	status = child_of(fork, true);
	child_records = account(&shared->slots[slot == shared->slots]);
	ok(status == 0 && slot->cursor == before && child_records == 60 &&
	   shared->last_pid != (uint32_t)getpid() &&
	   shared->last_pid == shared->last_tid,
	   "a child of fork records under its own pid, into its own area");
	call(20);
	ok(is_whole(80), "the parent's records go on after a fork");
}

static volatile pid_t forked;

HIDDEN static void forking_handler(int signal)
{
	(void)signal;
	forked = fork();
}

HIDDEN static void fork_in_handler(void)
{
	struct slot *slot;
	uint64_t before, n;
	int status;

	begin(2);
	signal(SIGUSR1, forking_handler);
	call(20);
	slot = mine();
	before = slot->cursor;
	raise(SIGUSR1);
	if (forked == 0) {
		call(30);
		_exit(0);
	}
	waitpid(forked, &status, 0);
	n = account(&shared->slots[slot == shared->slots]);
	call(1);
	ok(status == 0 && slot->cursor >= before + 16 && n == 60 &&
	   is_whole(42), "a fork in a handler likewise");
}

/* A thread of the child gets no area of its parent's threads. */
HIDDEN static void fork_then_thread(void)
{
	struct slot *slot;
	uint64_t before;
	int status;
	pid_t child;

	begin(3);
	call(20);
	slot = mine();
	before = slot->cursor;
	child = fork();
	if (child == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, short_thread, NULL);
		pthread_join(thread, NULL);
		call(10);
		_exit(0);
	}
	waitpid(child, &status, 0);
	ok(status == 0 && slot->cursor == before && shared->n_claims == 3 &&
	   is_whole(40 + 100),
	   "threads of a child that has not recorded yet have own areas");
}

HIDDEN static void call_in_vfork_child(void)
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		leaf();
		_exit(0);
	}
	waitpid(child, &status, 0);
}

HIDDEN static void vforks(void)
{
	begin(2);
	call(20);
	call_in_vfork_child();
	call(20);
	ok(is_whole(82) && shared->n_claims == 1,
	   "a child of vfork records as its parent");
}

/* Where its parent has no area yet, it claims none, which would be its own. */
HIDDEN static void vfork_first(void)
{
	uint32_t tid = (uint32_t)seam_fdr_syscall4(SYS_gettid, 0, 0, 0, 0);

	begin(2);
	call_in_vfork_child();
	call(20);
	ok(is_whole(40) && shared->n_lost == 2 && shared->n_claims == 1 &&
	   shared->last_tid == tid && shared->last_pid == (uint32_t)getpid(),
	   "where it is the first to record, its calls are counted as lost");
}

/* In a thread, and in a child of a fork that libc knows nothing of. */
HIDDEN static void *vfork_in_thread(void *unused)
{
	vfork_first();
	return unused;
}

HIDDEN static void vforks_elsewhere(void)
{
	pthread_t thread;
	pid_t child;
	int status;

	pthread_create(&thread, NULL, vfork_in_thread, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		begin(2);
		call(1);
		seam_fdr_thread_end();
		_exit(shared->last_pid != (uint32_t)getpid() ||
		      shared->last_tid != (uint32_t)getpid());
	}
	waitpid(child, &status, 0);
	ok(status == 0, "a child of clone() records by its own id");
}

HIDDEN static void full(void)
{
	enum { ROOM = AREA / SEAM_XRAY_CHUNK_BYTES * CHUNK_CALLS };
	struct slot *slot;
	uint64_t n, lost;

	begin(1);
	call(ROOM / 2 + 1000);
	slot = mine();
	n = account(slot);
	lost = slot->n_lost;
	/* NewCPUId and the like leave less room */
	ok(n + lost == ROOM + 2000 && lost >= 2000 && lost < 2100 &&
	   !shared->n_bad, "what a full area has no room for is counted");
	slot->tail += SEAM_XRAY_CHUNK_BYTES;
	slot->start += SEAM_XRAY_CHUNK_BYTES;
	shared->n_marked = 0;
	call(500);
	ok(slot->n_lost == lost && account(slot) > n - CHUNK_CALLS + 900 &&
	   !shared->n_bad && shared->n_marked == lost,
	   "and goes on when a chunk of it was read");
}

HIDDEN static void no_area(void)
{
	begin(0);
	call(100);
	ok(shared->n_lost == 200, "calls without an area are counted");
	shared->n_slots = 1;
	pause_of(1 << 25);
	call(100);
	ok(is_whole(200) && shared->n_lost == 200,
	   "a thread gets an area when one is free again");
}

HIDDEN static void arguments_and_events(void)
{
	static const uint8_t payload[5000] = { 1, 2, 3 };
	const uint64_t arguments[] = { 0, UINT64_MAX, 1, 2, 3, 4, 5, 6 };
	struct walk_record r;
	bool good = true;
	struct walk w;

	for (int pass = 0; pass < 300; pass++) {
		uint32_t bytes = (uint32_t)(pass * 17), want =
			bytes < SEAM_XRAY_MAX_PAYLOAD ? bytes :
							SEAM_XRAY_MAX_PAYLOAD;

		begin(1);
		call((unsigned int)pass * 25 + 1);
		w = (struct walk) {
			.area = mine()->bytes, .mask = AREA - 1,
			.at = mine()->cursor,
		};
		seam_fdr_record(seam_xray_word(9, SEAM_XRAY_ENTRY_ARGS),
				arguments, 8);
		seam_fdr_event(SEAM_XRAY_TYPED, 77, payload, bytes);
		seam_fdr_event(SEAM_XRAY_CUSTOM, 0, payload, bytes);
		leaf();
		w.end = mine()->cursor;
		good &= walk_next(&w, &r) && r.kind == SEAM_XRAY_ENTRY_ARGS;
		for (int i = 0; i < SEAM_XRAY_MAX_ARGUMENTS; i++)
			good &= walk_next(&w, &r) &&
				r.kind == SEAM_XRAY_ARGUMENT &&
				r.value == arguments[i];
		good &= walk_next(&w, &r) && r.kind == SEAM_XRAY_TYPED &&
			r.type == 77 && r.bytes == want &&
			!memcmp(r.payload, payload, want);
		good &= walk_next(&w, &r) && r.kind == SEAM_XRAY_CUSTOM &&
			r.bytes == want && !memcmp(r.payload, payload, want);
		good &= walk_next(&w, &r) && r.kind == SEAM_XRAY_ENTRY;
		good &= walk_next(&w, &r) && r.kind == SEAM_XRAY_EXIT;
		good &= !walk_next(&w, &r) && !w.problem;
	}
	ok(good, "arguments and events of any size, at any place in a chunk");
}

HIDDEN int main(int argc, char **argv)
{
	const struct patcher_code *code = argc > 1 && argv[1][0] == 'c' ?
					  &patcher_checked : &patcher_plain;

	/* ours was made before */
	for (int i = 0; i < 32; i++)
		pthread_key_create(&(pthread_key_t) { 0 }, NULL);
	/* the table is of the program's children too */
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	seam_fdr_rseq_init(argc > 2 && !strcmp(argv[2], "none"));
	if (shared == MAP_FAILED || seam_fdr_thread_init(&source))
		return 2;
	seam_fdr_n_lost = &shared->n_lost;
	patcher_patch(code);
	printf("1..19\n");
	migration();
	long_pause();
	many_threads();
	small_stack();
	destructors();
	closing();
	forks();
	fork_in_handler();
	fork_then_thread();
	vforks();
	vfork_first();
	vforks_elsewhere();
	full();
	no_area();
	arguments_and_events();
	return failed;
}
