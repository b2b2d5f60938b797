/* SPDX-License-Identifier: MIT */
/*
 * server.c - a server in which every layer has a part of each request
 *
 *	server [lua|lock|faults|preempt|random|none] [REQUESTS] [ONE_IN]
 *
 * C that clang instrumented for exact calls, Lua that calls back into C, code
 * that the server compiles itself, threads, a lock, file reads.  One in ONE_IN
 * requests is slow, for the reason that is given, or for one at random: a
 * quadratic loop in Lua, a lock that a flush holds, memory that is touched for
 * the first time, or batch jobs that take the CPU.  Every function looks the
 * same in a profile of all requests; 'seam view' shows what the slow ones did.
 *
 * examples/layers/demo builds and records it.
 */
#define _GNU_SOURCE
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
	N_WORKERS = 2, N_BATCH = 3,
	PAGE = 4096, N_RECORDS = 64,
	ITEMS = 60, MANY_ITEMS = 200,		/* of an order, in Lua */
	NEW_MEMORY = 16 << 20,
	FLUSH_MS = 12, BATCH_MS = 4,
};

enum reason { LUA, LOCK, FAULTS, PREEMPT, N_REASONS, NONE };

static const char *const names[] = { "lua", "lock", "faults", "preempt" };

/* The machine code of unsigned int checksum(const void *bytes, size_t n). */
static const unsigned char checksum_code[] =
	"\x55\x48\x89\xe5"		/* push rbp; mov rbp, rsp */
	"\x31\xc0\x48\x85\xf6\x74\x10"	/* xor eax, eax; test rsi, rsi; jz */
	"\x0f\xb6\x17\x6b\xc0\x1f"	/* movzx edx, [rdi]; imul eax, 31 */
	"\x01\xd0\x48\xff\xc7"		/* add eax, edx; inc rdi */
	"\x48\xff\xce\x75\xf0"		/* dec rsi; jnz */
	"\x5d\xc3";			/* pop rbp; ret */

typedef unsigned int checksum_function(const void *bytes, size_t n);

struct worker {
	pthread_t thread;
	lua_State *lua;
	unsigned int seed;
	int cpu;
	sem_t batch;		/* jobs that wait for a thread of this CPU */
};

static struct worker workers[N_WORKERS];
static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;
static long stock[N_RECORDS];
static sem_t flushes;
static atomic_int is_flushing;
static checksum_function *checksum;
static FILE *records;
static int n_requests = 400, one_in = 40;
static enum reason reason = N_REASONS;		/* at random */

/* -- in the background -------------------------------------------------- */

static void *flush_stock(void *unused)
{
	while (!sem_wait(&flushes)) {
		pthread_mutex_lock(&stock_lock);
		is_flushing = 1;
		usleep(FLUSH_MS * 1000);
		is_flushing = 0;
		pthread_mutex_unlock(&stock_lock);
	}
	return unused;
}

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

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *run_batch(void *of)
{
	struct worker *w = of;

	stay_on(w->cpu);
	while (!sem_wait(&w->batch))
		for (double end = cpu_ms() + BATCH_MS; cpu_ms() < end;)
			continue;
	return NULL;
}

/* -- a request ---------------------------------------------------------- */

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
	if (lua_pcall(w->lua, 2, 1, 0)) {
		fprintf(stderr, "server: %s\n", lua_tostring(w->lua, -1));
		exit(1);
	}
	lua_pop(w->lua, 1);
}

static void price(struct worker *w, int is_slow)
{
	call_lua(w, "price_order", ITEMS);
	if (is_slow)
		call_lua(w, "recommend", MANY_ITEMS);
}

static unsigned int read_record(int id)
{
	char page[PAGE];

	if (pread(fileno(records), page, PAGE, (off_t)PAGE * id) != PAGE)
		exit(1);
	return checksum(page, PAGE);
}

static void take_stock(int id)
{
	pthread_mutex_lock(&stock_lock);
	stock[id]++;
	pthread_mutex_unlock(&stock_lock);
}

static void render(unsigned int sum, int is_slow)
{
	size_t n = is_slow ? NEW_MEMORY : 4 * PAGE;
	char *text = mmap(NULL, n, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (text == MAP_FAILED)
		exit(1);
	madvise(text, n, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i += PAGE)
		text[i] = (char)sum;
	munmap(text, n);
}

static void start_batch(struct worker *w)
{
	for (int i = 0; i < N_BATCH; i++)
		sem_post(&w->batch);
	sched_yield();
}

static void handle_request(struct worker *w, enum reason slow)
{
	int id = rand_r(&w->seed) % N_RECORDS;

	if (slow == PREEMPT)
		start_batch(w);
	price(w, slow == LUA);
	take_stock(id);
	render(read_record(id), slow == FAULTS);
}

/* A request that meets a flush is no slower to begin with. */
static void await_flush(void)
{
	sem_post(&flushes);
	while (!is_flushing)
		sched_yield();
}

static void *work(void *of)
{
	struct worker *w = of;

	stay_on(w->cpu);
	for (int i = 1; i <= n_requests; i++) {
		enum reason slow = i % one_in ? NONE : reason == N_REASONS ?
			(enum reason)(rand_r(&w->seed) % N_REASONS) : reason;

		if (slow == LOCK)
			await_flush();
		handle_request(w, slow);
		usleep(200);
	}
	return NULL;
}

/* -- the program -------------------------------------------------------- */

static void compile_checksum(void)
{
	static const unsigned char by_frame_pointer[20] = { 1, 0xff, 0xff,
							    0xff };
	struct seam_jitdump_unwinding unwinding = {
		.eh_frame_hdr = by_frame_pointer, .eh_frame_hdr_size = 20,
	};
	struct seam_jitdump_code code = {
		.name = "checksum", .size = sizeof(checksum_code) - 1,
		.unwinding = &unwinding,
	};
	struct seam_jitdump *dump;
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	memcpy(p, checksum_code, code.size);
	code.bytes = p;
	if (seam_jitdump_open(&dump, NULL))
		dump = NULL;		/* no profiler is no reason to stop */
	seam_jitdump_load(dump, &code, 1);
	seam_jitdump_close(dump);
	memcpy(&checksum, &p, sizeof(p));
}

static int start_worker(struct worker *w, int i, const char *rules)
{
	pthread_t thread;

	w->cpu = i;
	w->seed = (unsigned int)(time(NULL) * N_WORKERS + i);
	w->lua = luaL_newstate();
	luaL_openlibs(w->lua);
	lua_register(w->lua, "tax", tax);
	if (luaL_dofile(w->lua, rules) || sem_init(&w->batch, 0, 0))
		return -1;
	for (int k = 0; k < N_BATCH; k++)
		if (pthread_create(&thread, NULL, run_batch, w))
			return -1;
	return pthread_create(&w->thread, NULL, work, w);
}

static int parse(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "random";

	if (argc > 2)
		n_requests = atoi(argv[2]);
	if (argc > 3)
		one_in = atoi(argv[3]);
	if (!strcmp(word, "none"))
		reason = NONE;
	else if (strcmp(word, "random"))
		for (reason = 0; reason < N_REASONS; reason++)
			if (!strcmp(word, names[reason]))
				break;
	return reason == N_REASONS && strcmp(word, "random") ? -1 :
	       one_in > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	pthread_t flusher;
	static char page[PAGE];

	if (parse(argc, argv)) {
		fprintf(stderr, "usage: server [lua|lock|faults|preempt|"
			"random|none] [REQUESTS] [ONE_IN]\n");
		return 2;
	}
	compile_checksum();
	records = tmpfile();
	for (int i = 0; i < N_RECORDS; i++)
		fwrite(page, PAGE, 1, records);
	fflush(records);
	if (sem_init(&flushes, 0, 0) ||
	    pthread_create(&flusher, NULL, flush_stock, NULL))
		return 1;
	for (int i = 0; i < N_WORKERS; i++)
		if (start_worker(&workers[i], i, "orders.lua"))
			return 1;
	for (int i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}
