/* SPDX-License-Identifier: MIT */
/*
 * server.c - a server in which every layer has a part of each request
 *
 *	server [lua|lock|faults|preempt|random|none] [REQUESTS] [ONE_IN] [SEED]
 *
 * C that clang instrumented for exact calls, Lua that calls back into C, code
 * that the server compiles itself, threads, a lock, file reads.  One in ONE_IN
 * requests is slow, for the reason that is given, or for one at random: a
 * quadratic loop in Lua, a lock that a flush holds, memory that is touched for
 * the first time, or batch jobs that take the CPU.  Each slow request is a line
 * of the log, by the server's own clocks.  Every function looks the same in a
 * profile of all requests; 'seam view' shows what the slow ones did.
 *
 * examples/layers/demo builds and records it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>
#include <seam/jitdump.h>

enum {
	N_WORKERS = 2, N_RECORDS = 16, PAGE = 4096, PAUSE_US = 200,
	ITEMS = 60, MANY_ITEMS = 500,		/* of an order, in Lua */
	NEW_MEMORY = 40 << 20, FLUSH_MS = 25, N_JOBS = 8, JOB_MS = 4,
};

enum reason { LUA, LOCK, FAULTS, PREEMPT, RANDOM, NONE };
static const char *const words[] = { "lua", "lock", "faults", "preempt",
				     "random", "none" };

struct worker {
	pthread_t thread;
	lua_State *lua;
	unsigned int seed;
	int64_t locked_ns;	/* for which it waited for the lock */
	sem_t jobs;		/* for other threads of its CPU */
	int cpu;
};

static struct worker workers[N_WORKERS];	/* live as long as jobs do */
static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;
static long stock[N_RECORDS];
static unsigned int (*checksum)(const void *bytes, size_t n);
static int records;		/* a file: this program */
static int n_requests = 800, one_in = 40;
static atomic_int n_begun;
static enum reason reason = RANDOM;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* -- parts of a request ------------------------------------------------- */

/* Lua calls it for every item. */
static int tax(lua_State *lua)
{
	lua_pushnumber(lua, luaL_checknumber(lua, 1) * 1.19);
	return 1;
}

static void call_lua(struct worker *w, const char *function, int items)
{
	lua_getglobal(w->lua, function);
	lua_pushinteger(w->lua, rand_r(&w->seed) % 1000);
	lua_pushinteger(w->lua, items);
	lua_call(w->lua, 2, 0);
}

static unsigned int read_record(int id)
{
	char page[PAGE];

	if (pread(records, page, PAGE, (off_t)PAGE * id) != PAGE)
		exit(1);
	return checksum(page, PAGE);
}

static void take_stock(struct worker *w, int id)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&stock_lock);
	w->locked_ns = clock_ns(CLOCK_MONOTONIC) - begin;
	stock[id]++;
	pthread_mutex_unlock(&stock_lock);
}

static void render(unsigned int sum, size_t n)
{
	char *text = mmap(NULL, n, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(text, n, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i += PAGE)
		text[i] = (char)sum;
	munmap(text, n);
}

/* -- what makes it slow ------------------------------------------------- */

static void start(void *(*run)(void *), void *context)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, context) ||
	    pthread_detach(thread))
		exit(1);
}

static void *flush_stock(void *has_begun)
{
	pthread_mutex_lock(&stock_lock);
	sem_post(has_begun);
	usleep(FLUSH_MS * 1000);
	pthread_mutex_unlock(&stock_lock);
	return NULL;
}

/* A request that meets a flush is no slower to begin with. */
static void await_flush(void)
{
	sem_t has_begun;

	sem_init(&has_begun, 0, 0);
	start(flush_stock, &has_begun);
	sem_wait(&has_begun);
}

static void *run_jobs(void *of)
{
	struct worker *w = of;
	int64_t end;

	while (!sem_wait(&w->jobs))
		for (end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + JOB_MS * 1000000;
		     clock_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
			continue;
	return NULL;
}

static void start_jobs(struct worker *w)
{
	for (int i = 0; i < N_JOBS; i++)
		sem_post(&w->jobs);
	sched_yield();
}

/* -- requests ----------------------------------------------------------- */

static void handle_request(struct worker *w, enum reason slow)
{
	int id = rand_r(&w->seed) % N_RECORDS;

	if (slow == PREEMPT)
		start_jobs(w);
	call_lua(w, "price_order", ITEMS);
	if (slow == LUA)
		call_lua(w, "recommend", MANY_ITEMS);
	take_stock(w, id);
	render(read_record(id), slow == FAULTS ? NEW_MEMORY : 4 * PAGE);
}

static void be_slow(struct worker *w, enum reason slow)
{
	int64_t begin, cpu;

	if (slow == LOCK)
		await_flush();
	begin = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	handle_request(w, slow);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("slow %s thread %d from %" PRId64 " to %" PRId64 " cpu %" PRId64
	       " lock %" PRId64 "\n", words[slow], gettid(), begin,
	       clock_ns(CLOCK_MONOTONIC), cpu, w->locked_ns);
}

/* Threads that this one starts stay on its CPU too. */
static void stay_on(int cpu)
{
	cpu_set_t allowed, one;
	int nth = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed) &&
		    nth++ == cpu % CPU_COUNT(&allowed))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *work(void *of)
{
	struct worker *w = of;

	stay_on(w->cpu);
	for (int i = 0; i < N_JOBS; i++)
		start(run_jobs, w);
	for (int i; (i = ++n_begun) <= n_requests; usleep(PAUSE_US))
		if (i % one_in != one_in / 2 || reason == NONE)
			handle_request(w, NONE);
		else
			be_slow(w, reason != RANDOM ? reason :
				(enum reason)(rand_r(&w->seed) % RANDOM));
	return NULL;
}

/* -- the program -------------------------------------------------------- */

/* unsigned int checksum(const void *bytes, size_t n) */
static const unsigned char checksum_code[] =
	"\x55\x48\x89\xe5"		/* push rbp; mov rbp, rsp */
	"\x31\xc0\x48\x85\xf6\x74\x10"	/* xor eax, eax; test rsi, rsi; jz */
	"\x0f\xb6\x17\x6b\xc0\x1f"	/* movzx edx, [rdi]; imul eax, 31 */
	"\x01\xd0\x48\xff\xc7"		/* add eax, edx; inc rdi */
	"\x48\xff\xce\x75\xf0"		/* dec rsi; jnz */
	"\x5d\xc3";			/* pop rbp; ret */

static void compile_checksum(void)
{
	struct seam_jitdump_code code = {
		.name = "checksum", .size = sizeof(checksum_code) - 1,
	};
	struct seam_jitdump *dump = NULL;
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	code.bytes = memcpy(p, checksum_code, code.size);
	/* no profiler is no reason to stop: then it is NULL */
	seam_jitdump_open(&dump, NULL);
	seam_jitdump_load(dump, &code, 1);
	seam_jitdump_close(dump);
	memcpy(&checksum, &p, sizeof(p));
}

static int start_worker(struct worker *w, int i, unsigned int seed)
{
	w->seed = seed + i;
	w->cpu = i;
	w->lua = luaL_newstate();
	luaL_openlibs(w->lua);
	lua_register(w->lua, "tax", tax);
	return luaL_dofile(w->lua, "orders.lua") || sem_init(&w->jobs, 0, 0) ||
	       pthread_create(&w->thread, NULL, work, w);
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 4 ? atoi(argv[4]) : time(NULL);
	const char *word = argc > 1 ? argv[1] : "random";

	for (reason = LUA; reason <= NONE && strcmp(word, words[reason]);)
		reason++;
	n_requests = argc > 2 ? atoi(argv[2]) : n_requests;
	one_in = argc > 3 ? atoi(argv[3]) : one_in;
	if (reason > NONE || one_in <= 0) {
		fprintf(stderr, "usage: server [lua|lock|faults|preempt|random|"
			"none] [REQUESTS] [ONE_IN] [SEED]\n");
		return 2;
	}
	compile_checksum();
	records = open("/proc/self/exe", O_RDONLY);
	for (int i = 0; i < N_WORKERS; i++)
		if (start_worker(&workers[i], i, seed))
			return 1;
	for (int i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}
