/* SPDX-License-Identifier: MIT */
/*
 * cost.c - what it costs to record the entry and exit of a function
 *
 * Prints "NAME NS" for each thing measured, the median of many rounds in which
 * each takes its turn: nanoseconds of the thread's CPU time of a call, less
 * those of the same function without sleds.  Built four times:
 *
 *	SEAM		clang -fxray-instrument, Seam's trampolines
 *	COMPILER_RT	clang -fxray-instrument, LLVM's runtime and FDR mode
 *	UFTRACE		gcc -pg, run by uftrace
 *	none of them	clang -fxray-instrument, run by seam record --trace
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef UFTRACE
#define HIDDEN __attribute__((no_instrument_function))
#define SHOWN __attribute__((noinline))
enum { ROUNDS = 11, CALLS = 50000 };
#else
#define HIDDEN __attribute__((xray_never_instrument))
#define SHOWN __attribute__((xray_always_instrument, noinline))
#if defined(SEAM) || defined(COMPILER_RT)
enum { ROUNDS = 61, CALLS = 100000 };
#else
enum { ROUNDS = 21, CALLS = 100000 };
#endif
#endif

#ifdef SEAM
#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/rseq.h"
#include "tests/fdr/patcher.h"
#include "tests/fdr/source_local.h"
#endif

#ifdef COMPILER_RT
/* The headers are for C++.  Source: xray/xray_{log_,}interface.h, LLVM 14 */
enum { XRAY_LOG_INITIALIZED = 2, SUCCESS = 1 };
int __xray_log_select_mode(const char *mode);
int __xray_log_init_mode(const char *mode, const char *config);
int __xray_log_finalize(void);
int __xray_patch(void);
int __xray_unpatch(void);
#endif

typedef int function(int);

SHOWN int leaf(int x)
{
	__asm__ volatile("");
	return x + 1;
}

HIDDEN __attribute__((noinline)) int bare(int x)
{
	__asm__ volatile("");
	return x + 1;
}

HIDDEN __attribute__((noinline)) int two_rdtsc(int x)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a" (low), "=d" (high));
	x++;
	__asm__ volatile("rdtsc" : "=a" (low), "=d" (high));
	return x;
}

HIDDEN static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

HIDDEN static double time_of(function *f)
{
	double start = now();
	int sum = 0;

	for (int i = 0; i < CALLS; i++)
		sum = f(sum);
	__asm__ volatile("" :: "r" (sum));
	return (now() - start) / CALLS;
}

HIDDEN static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct thing {
	const char *name;
	function *f;
	double ns[ROUNDS];
};

/* Each less @things[0], round by round. */
HIDDEN static void measure(struct thing *things, int n)
{
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < n; i++)
			things[i].ns[r] = time_of(things[i].f);
	for (int i = 1; i < n; i++) {
		for (int r = 0; r < ROUNDS; r++)
			things[i].ns[r] -= things[0].ns[r];
		qsort(things[i].ns, ROUNDS, sizeof(double), compare);
		printf("%s %.3f\n", things[i].name, things[i].ns[ROUNDS / 2]);
	}
}

#ifdef SEAM
/* As the library's stubs, for sleds that are 2 GiB away or more. */
__asm__(".pushsection .text\n"
	"stub_entry: jmp *1f(%rip)\n"
	"stub_exit: jmp *2f(%rip)\n"
	".popsection\n"
	".pushsection .data.rel.ro, \"aw\"\n"
	"1: .quad seam_fdr_sled_entry\n"
	"2: .quad seam_fdr_sled_exit\n"
	".popsection\n");
extern const char stub_entry[], stub_exit[];
static const struct patcher_code patcher_used = {
	seam_fdr_sled_entry, seam_fdr_sled_exit, seam_fdr_sled_tail,
};

/*
 * Stands for a time that all calls reach: two readings of the TSC in a row
 * differ by 1 tick or, on some machines, by 26.
 */
enum { KEEP_ALL = 1 };

/* What each check costs where a function needs it, and all of them. */
static const struct {
	const char *name;
	struct seam_fdr_options options;
} checks[] = {
	{ "min", { .min_ns = KEEP_ALL } },
	{ "min_taken_back", { .min_ns = 1000000000 } },
	{ "args1", { .n_arguments = 1 } },
	{ "args6", { .n_arguments = 6 } },
	{ "depth", { .depth = 4 } },
	{ "trigger", {
		.triggers = { { .kind = SEAM_TRIGGER_SLOW,
				.limit_ns = 1000000000 } },
		.n_triggers = 1 } },
	{ "all_checks", {
		.min_ns = KEEP_ALL, .n_arguments = 2, .depth = 4,
		.triggers = { { .kind = SEAM_TRIGGER_SLOW,
				.limit_ns = 1000000000 } },
		.n_triggers = 1 } },
};

HIDDEN static void measure_checks(struct thing *things)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		uint32_t id = patcher_id((const void *)leaf);
		if (seam_fdr_check_init(&checks[i].options))
			exit(1);
		if (checks[i].options.min_ns == KEEP_ALL)
			seam_fdr_min_ticks = 1;
		if (checks[i].options.n_triggers)
			seam_fdr_trigger_function(0, id);
		/* as where they are patched: with a trigger, to those */
		patcher_patch(checks[i].options.n_triggers ?
			      &patcher_checked : &patcher_used);
		things[2].name = checks[i].name;
		measure(things, 3);
	}
}

HIDDEN static void start(bool free_running)
{
	local_bytes = 1 << 20;
	local_free_running = free_running;
	seam_fdr_rseq_init(false);
	if (seam_fdr_thread_init(&source_local))
		exit(1);
}
#endif

HIDDEN int main(void)
{
	static struct thing unpatched[] = {
		{ .name = "bare", .f = bare },
		{ .name = "unpatched", .f = leaf },
	};
	static struct thing patched[] = {
		{ .name = "bare", .f = bare },
		{ .name = "two_rdtsc", .f = two_rdtsc },
		{ .name = "patched", .f = leaf },
	};

#ifdef SEAM
	measure(unpatched, 2);
	start(true);
	patcher_patch(&patcher_used);
	measure(patched, 3);
	patcher_patch(&(struct patcher_code) {
		stub_entry, stub_exit, seam_fdr_sled_tail,
	});
	patched[2].name = "stubs";
	measure(patched, 3);
	measure_checks(patched);
#elif defined(COMPILER_RT)
	(void)unpatched;
	if (__xray_log_select_mode("xray-fdr") ||
	    __xray_log_init_mode("xray-fdr", "buffer_size=1048576:buffer_max=4:"
				 "func_duration_threshold_us=0:"
				 "no_file_flush=true") !=
	    XRAY_LOG_INITIALIZED || __xray_patch() != SUCCESS)
		return 1;
	measure(patched, 3);
	__xray_unpatch();
	__xray_log_finalize();
#else
	(void)unpatched;
	measure(patched, 3);
#endif
	return 0;
}
