/* SPDX-License-Identifier: MIT */
/*
 * guest_handler [LIBLUAJIT] - what a sample of a virtual machine costs
 *
 *   - a sample of 20 Lua functions and 20 host frames, all of one function,
 *     then each of its own, with the system calls that it makes
 *   - the host's part alone
 *   - what is read: a page that is checked, and the same by process_vm_readv()
 *
 * Each is the least and the median of RUNS, in CPU time.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "traced/guest/guest_adapter.h"
#include "traced/guest/luajit/lua_api.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

enum { RUNS = 15, REPEAT = 2000, GUEST = 20, PLACES = 64, PAGE = 4096 };

static struct seam_lua_api api;
static struct seam_guest_sample *sample;
static int n_host;		/* C functions between main() and the VM */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name, double divisor, void (*once)(void))
{
	double of_run[RUNS];

	for (int run = 0; run < RUNS; run++) {
		uint64_t start = now_ns();

		for (int i = 0; i < REPEAT; i++)
			once();
		of_run[run] = (double)(now_ns() - start) / REPEAT / divisor;
	}
	qsort(of_run, RUNS, sizeof(of_run[0]), by_value);
	printf("  %-46s %8.0f ns (median %.0f)\n", name, of_run[0],
	       of_run[RUNS / 2]);
}

/* --- a sample --- */

static void take(void)
{
	ucontext_t context;

	getcontext(&context);
	seam_guest_take(&context, sample);
}

static void walk_host(void)
{
	struct seam_unwind_stack stack = {
		.frames = sample->host, .max = SEAM_GUEST_MAX_HOST };
	ucontext_t context;

	getcontext(&context);
	seam_self_walk(&context, &stack);
}

static void get_context(void)
{
	ucontext_t context;

	getcontext(&context);
}

static int measure_sample(struct seam_lua *lua)
{
	char name[80];

	(void)lua;
	take();
	snprintf(name, sizeof(name), "%zu guest, %zu host frames%s",
		 sample->n_frames, sample->stack.n,
		 sample->head.guest_end ? ", NOT COMPLETE" : "");
	measure(name, 1, take);
	measure("  the host's alone", 1, walk_host);
	measure("  of both, getcontext(), which no handler calls", 1,
		get_context);
	return 0;
}

/* --- the stack --- */

static void run(const char *chunk)
{
	struct seam_lua *lua = api.newstate();

	api.openlibs(lua);
	if (api.loadbuffer(lua, chunk, strlen(chunk), "=bench") != 0)
		exit(1);
	api.pushcclosure(lua, measure_sample, 0);
	api.pcall(lua, 1, 0, 0);
	api.close(lua);
}

__attribute__((noinline)) static void run_below(int n, const char *chunk)
{
	volatile int keep = n;

	if (n > 0)
		run_below(n - 1, chunk);
	else
		run(chunk);
	n_host += keep > 1000;
}

static void measure_samples(void)
{
	static const char same[] =
		"local c = ... jit.off()\n"
		"local function f(n) if n == 1 then c() return 1 end\n"
		"  local r = f(n - 1) return r end\n"
		"local r = f(19)\n";
	static const char each[] =
		"local c = ... jit.off()\n"
		"local f = {}\n"
		"for i = 1, 19 do\n"
		"  f[i] = loadstring(('%slocal f, c, n = ... if n == 1 then '\n"
		"    .. 'c() return 1 end local r = f[n - 1](f, c, n - 1)'\n"
		"    .. 'return r'):format(('\\n'):rep(i)))\n"
		"end\n"
		"local r = f[19](f, c, 19)\n";

	run_below(12, same);
	run_below(12, each);
}

/* --- reads --- */

static uint8_t *pages;

static void probe_pages(void)
{
	struct seam_guest_memory memory;
	uint64_t word;

	seam_guest_memory_init(&memory);
	for (int i = 0; i < PLACES; i++)
		seam_guest_u64(&memory, (uint64_t)(uintptr_t)pages +
			       (uint64_t)i * PAGE, &word);
}

static void read_batched(void)
{
	static uint64_t words[PLACES];
	struct iovec local = { words, sizeof(words) }, remote[PLACES];

	for (int i = 0; i < PLACES; i++)
		remote[i] = (struct iovec) { pages + i * PAGE, 8 };
	syscall(SYS_process_vm_readv, getpid(), &local, 1, remote, PLACES, 0);
}

static void measure_reads(void)
{
	size_t size = PLACES * PAGE;

	pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (pages == MAP_FAILED)
		exit(1);
	measure("a page: checked, then loaded from", PLACES, probe_pages);
	measure("a place of one process_vm_readv() of 64", PLACES,
		read_batched);
}

static void *find_symbol(void *image, const char *name)
{
	return dlsym(image, name);
}

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "libluajit-5.1.so.2",
			       RTLD_NOW);
	const char *missing;
	uint64_t start;

	if (!library || !seam_lua_api_find(&api, find_symbol, library,
					   &missing)) {
		fprintf(stderr, "guest_handler: no LuaJIT\n");
		return 1;
	}
	sample = mmap(NULL, sizeof(*sample), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	seam_self_init();
	seam_self_thread_begin();
	start = now_ns();
	if (sample == MAP_FAILED || seam_guest_init() < 0) {
		fprintf(stderr, "guest_handler: %s\n", seam_guest_refusal());
		return 1;
	}
	printf("a sample of %s, in a handler\n", seam_guest_slots[0].name);
	printf("  %-46s %8.1f ms\n", "found, calibrated and proven",
	       (double)(now_ns() - start) / 1e6);
	measure_samples();
	measure_reads();
	return 0;
}
