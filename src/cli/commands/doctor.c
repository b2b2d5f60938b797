/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - 'seam doctor': what can be recorded, and what would enable more
 *
 * Each check opens an event or maps a ring of its own; it does not infer the
 * result from settings.  Settings are named where changing them would change
 * the result.
 */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "record/events/event_kinds.h"
#include "record/proc/procfs.h"
#include "record/record.h"
#include "base/tsc.h"
#include "ring/consumer.h"
#include "symbol/elf/cfi_file.h"
#include "symbol/kernel/kernel.h"
#include "symbol/sandbox/sandbox.h"

enum { WIDTH = 80 };

enum verdict {
	YES,
	LIMITED,	/* works with restrictions */
	NO,
};

static const char *const verdicts[] = { "yes", "limited", "no" };

/* A check and its result; zeroed, it is YES. */
struct check_result {
	const char *key;	/* for scripts: "kernel-samples" */
	const char *title;	/* for people */
	enum verdict verdict;
	char found[200];	/* details of the verdict; may be "" */
	char remedy[240];	/* how to change it; "" where impossible */
};

enum {
	OWN_THREAD = 0,
	EVERY_CPU = -1,
	EVERY_THREAD = -1,
	SMALL_COPY = 16384,	/* of a stack; compilers and php need it */
};

static int open_event(const struct perf_event_attr *of, int pid, int cpu)
{
	struct perf_event_attr attr = *of;
	int fd;

	attr.size = PERF_ATTR_SIZE_VER7;
	attr.disabled = 1;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1,
			  PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* 0 when it opens, else -errno. */
static int try_event(const struct perf_event_attr *attr, int pid, int cpu)
{
	int fd = open_event(attr, pid, cpu);

	seam_file_close_fd(fd);
	return fd < 0 ? fd : 0;
}

/* Members of an event of all code, by a clock or by the cycles of the CPU. */
#define CLOCK								\
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,	\
	.sample_period = 1000000, .exclude_hv = 1
#define CYCLES								\
	.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,	\
	.sample_period = 1000000, .exclude_hv = 1
#define USER_CODE .exclude_kernel = 1, .exclude_callchain_kernel = 1

static const struct perf_event_attr user_clock = {
	CLOCK, USER_CODE, .sample_type = PERF_SAMPLE_IP,
};

__attribute__((format(printf, 3, 4)))
static void set_verdict(struct check_result *check, enum verdict verdict,
			const char *fmt, ...)
{
	va_list args;

	check->verdict = verdict;
	va_start(args, fmt);
	vsnprintf(check->found, sizeof(check->found), fmt, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3)))
static void advise(struct check_result *check, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(check->remedy, sizeof(check->remedy), fmt, args);
	va_end(args);
}

/* An event that may be refused, and why. */
struct event_check {
	struct perf_event_attr attr;
	bool of_all;		/* threads, on one CPU */
	int level;		/* perf_event_paranoid; where needs is NULL: */
	/* a feature of the CPU and its driver, or of newer kernels */
	const char *needs;
};

static void check_event(struct check_result *check,
			const struct event_check *event)
{
	int r = event->of_all ? try_event(&event->attr, EVERY_THREAD, 0) :
		try_event(&event->attr, OWN_THREAD, EVERY_CPU);
	long paranoid = seam_procfs_sysctl("perf_event_paranoid", 2);

	if (r == 0)
		return;
	if (event->needs) {
		set_verdict(check, NO, "%s", r == -ENOENT ||
			    r == -EOPNOTSUPP || r == -ENODEV ?
			    "this machine has none" : strerror(-r));
		advise(check, "%s", event->needs);
		return;
	}
	set_verdict(check, NO, "%s (kernel.perf_event_paranoid=%ld)",
		    strerror(-r), paranoid);
	if (r == -ENOSYS)
		advise(check, "a kernel with CONFIG_PERF_EVENTS=y");
	else if (paranoid > event->level)
		advise(check, "sysctl kernel.perf_event_paranoid=%d, or "
		       "CAP_PERFMON", event->level);
	else
		advise(check, "a seccomp profile (of the container?) that "
		       "allows perf_event_open");
}

static void check_kernel_names(struct check_result *check)
{
	long hidden = seam_procfs_sysctl("kptr_restrict", 0);
	long paranoid = seam_procfs_sysctl("perf_event_paranoid", 2);
	struct seam_kernel_identity kernel = { 0 };

	seam_kernel_identify(&kernel, NULL);
	if (kernel.text_addr)
		return;
	set_verdict(check, NO, "/proc/kallsyms shows no addresses "
		    "(kernel.kptr_restrict=%ld, "
		    "kernel.perf_event_paranoid=%ld)", hidden, paranoid);
	if (hidden <= 0 && paranoid <= 1)
		advise(check, "CAP_SYSLOG");
	else
		advise(check, "sysctl%s%s%s",
		       hidden > 0 ? " kernel.kptr_restrict=0" : "",
		       paranoid > 1 ? " kernel.perf_event_paranoid=1" : "",
		       hidden > 1 ? "" : ", or CAP_SYSLOG");
}

static void check_aux(struct check_result *check)
{
	struct seam_perf_pmu pmus[128];
	size_t n = seam_procfs_pmus(pmus, SEAM_ARRAY_SIZE(pmus));

	for (size_t i = 0; i < n; i++)
		if (seam_aux_pmu_kind(pmus[i].name)) {
			set_verdict(check, YES, "%s", pmus[i].name);
			return;
		}
	set_verdict(check, NO, "no such PMU");
	advise(check, "a CPU with Intel PT, CoreSight or SPE");
}

static void check_tracepoints(struct check_result *check)
{
	struct event_check event = {
		.attr = { .type = PERF_TYPE_TRACEPOINT, .sample_period = 1,
			  .sample_type = PERF_SAMPLE_IP, .exclude_hv = 1,
			  .exclude_callchain_kernel = 1 },
		.level = -1,
	};
	int tracefs = seam_tracefs_open(NULL);
	int id = tracefs < 0 ? tracefs :
		 seam_tracefs_id(tracefs, "sched", "sched_switch", NULL);

	seam_file_close_fd(tracefs);
	if (id < 0) {
		set_verdict(check, NO, "cannot read tracefs: %s",
			    strerror(-id));
		advise(check, "%s", seam_tracefs_remedy(id));
		return;
	}
	event.attr.config = (__u64)id;
	check_event(check, &event);
}

/* Whether a ring of @bytes can be mapped on all CPUs at once. */
static bool map_all(const struct seam_number_list *cpus, size_t bytes)
{
	struct seam_ring *rings = calloc(cpus->n, sizeof(*rings));
	int *fds = calloc(cpus->n, sizeof(*fds));
	bool ok = rings && fds;

	for (size_t i = 0; ok && i < cpus->n; i++) {
		fds[i] = open_event(&user_clock, OWN_THREAD, cpus->items[i]);
		ok = fds[i] >= 0 &&
		     seam_ring_map(&rings[i], fds[i], bytes, false, NULL) == 0;
	}
	for (size_t i = 0; rings && fds && i < cpus->n; i++) {
		seam_ring_fini(&rings[i]);
		if (fds[i] > 0)
			close(fds[i]);
	}
	free(rings);
	free(fds);
	return ok;
}

/* The largest ring, of @most bytes or less, that can be mapped on all CPUs. */
static size_t largest_ring(size_t most, size_t least, size_t *n_cpus)
{
	struct seam_number_list cpus = { 0 };

	seam_procfs_cpus(&cpus, NULL);
	while (most > least && !map_all(&cpus, most))
		most /= 2;
	*n_cpus = cpus.n;
	free(cpus.items);
	return most;
}

static void check_ring_space(struct check_result *check)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n;
	size_t bytes = largest_ring(SEAM_RECORD_RING_BYTES, page, &n);
	char size[SEAM_TEXT_SIZE];

	set_verdict(check, bytes == SEAM_RECORD_RING_BYTES ? YES :
		    bytes > page ? LIMITED : NO,
		    "rings of %s on %zu CPU%s (kernel.perf_event_mlock_kb=%ld)",
		    seam_text_size(size, bytes), n, n == 1 ? "" : "s",
		    seam_procfs_sysctl("perf_event_mlock_kb", 516));
	if (check->verdict != YES)
		advise(check, "sysctl kernel.perf_event_mlock_kb=%d, a higher "
		       "'ulimit -l', or CAP_IPC_LOCK",
		       (SEAM_RECORD_RING_BYTES + 128 * 1024) / 1024 + 8);
}

/* Copies of stacks, which "seam record" unwinds. */
static void check_stacks(struct check_result *check)
{
	struct seam_event event = { .attr = user_clock };
	struct rlimit limit = { 0 };
	char ring[SEAM_TEXT_SIZE];
	size_t bytes, n;
	uint32_t copy;
	int r;

	seam_stack_plan_apply(&event, SEAM_CALL_GRAPH_AUTO,
			      SEAM_STACK_PLAN_DWARF_BYTES);
	r = try_event(&event.attr, OWN_THREAD, EVERY_CPU);
	if (r < 0) {
		set_verdict(check, NO, "the kernel does not copy "
			    "user stacks: %s", strerror(-r));
		return;
	}
	getrlimit(RLIMIT_MEMLOCK, &limit);
	bytes = largest_ring(SEAM_STACK_PLAN_MAX_RING_BYTES,
			     SEAM_STACK_PLAN_DWARF_BYTES, &n);
	copy = seam_stack_plan_bytes(bytes, SEAM_STACK_PLAN_HZ);
	set_verdict(check, copy >= SMALL_COPY ? YES : copy ? LIMITED : NO,
		    "copies of %u KiB at %d Hz, by rings of %s on %zu CPU%s",
		    copy / 1024, SEAM_STACK_PLAN_HZ,
		    seam_text_size(ring, bytes), n, n == 1 ? "" : "s");
	if (copy < SMALL_COPY)
		advise(check, "a higher 'ulimit -l' (it is %lu KiB), or "
		       "CAP_IPC_LOCK", (unsigned long)limit.rlim_cur / 1024);
}

static void check_rate(struct check_result *check)
{
	long max_hz = seam_procfs_sysctl("perf_event_max_sample_rate", 0);
	bool enough = max_hz >= SEAM_RECORD_FREQUENCY_HZ;

	set_verdict(check, enough ? YES : LIMITED, "at most %ld Hz", max_hz);
	if (!enough)
		advise(check, "sysctl kernel.perf_event_max_sample_rate="
		       "100000; the kernel lowers it by "
		       "kernel.perf_cpu_time_max_percent");
}

static void check_descriptors(struct check_result *check)
{
	struct rlimit limit = { 0 };
	struct seam_number_list cpus = { 0 };
	rlim_t needed;

	getrlimit(RLIMIT_NOFILE, &limit);
	seam_procfs_cpus(&cpus, NULL);
	needed = 2 * cpus.n + 64;
	set_verdict(check, limit.rlim_max >= needed ? YES : LIMITED,
		    "%lu, and %lu on request; a command on %zu CPUs takes %zu",
		    (unsigned long)limit.rlim_cur,
		    (unsigned long)limit.rlim_max, cpus.n, 2 * cpus.n);
	if (check->verdict != YES)
		advise(check, "a higher hard limit: 'ulimit -Hn'");
	free(cpus.items);
}

static void say_hello(struct seam_ipc *ipc, void *context)
{
	(void)context;
	seam_ipc_send(ipc, 0, -1);
}

/* Start a sandbox, and receive a message from it. */
static void check_isolation(struct check_result *check)
{
	struct seam_sandbox sandbox;
	struct seam_message hello;
	struct seam_err err = { 0 };
	const char *missing;
	int r = seam_sandbox_start(&sandbox, say_hello, NULL, &err);

	if (!r && seam_ipc_receive(&sandbox.ipc, &hello))
		r = seam_err_set(&err, -EIO, "it does not answer");
	missing = seam_sandbox_missing(&sandbox);
	set_verdict(check, r ? NO : missing ?
		    LIMITED : YES, "%s%s",
		    missing ? "without limits on: " : "",
		    r ? err.cause[0] : missing ? missing :
		    "system calls, memory and user are limited");
	if (r)
		advise(check, "the right to fork; without, reports have no "
		       "names of files");
	else if (missing)
		advise(check, "a kernel and a container that allow seccomp, "
		       "setresuid and setrlimit");
	seam_sandbox_end(&sandbox, NULL, 0);
}

static void check_library(struct check_result *check, const char *name)
{
	char library[PATH_MAX];

	if (seam_preload_find(name, library)) {
		set_verdict(check, YES, "%s", library);
		return;
	}
	set_verdict(check, NO, "%s was not found", name);
	advise(check, "%s beside the program, or installed", name);
}

/* The sampler that 'seam record' preloads into programs with LuaJIT. */
static void check_sampler(struct check_result *check)
{
	check_library(check, SEAM_SAMPLER_LIBRARY);
}

/* --off-cpu: the times of waits, and their stacks. */
static void check_waits(struct check_result *check)
{
	static const struct event_check times = {
		.attr = { .type = PERF_TYPE_SOFTWARE, .exclude_hv = 1,
			  .config = PERF_COUNT_SW_DUMMY, USER_CODE,
			  .sample_period = 1, .context_switch = 1 },
		.level = 2,
	}, stacks = {
		.attr = { .type = PERF_TYPE_SOFTWARE, .sample_period = 1,
			  .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
			  .sample_type = PERF_SAMPLE_IP },
		.level = 1,
	};

	check_event(check, &times);
	if (check->verdict != YES)
		return;
	check_event(check, &stacks);
	if (check->verdict == YES)
		set_verdict(check, YES, "exact times, and the stack of each");
	else
		set_verdict(check, LIMITED, "exact times, no stacks at their "
			    "begin");
}

/* What 'seam record --trace' preloads into all programs. */
static void check_calls(struct check_result *check)
{
	check_library(check, SEAM_FDR_LIBRARY);
	if (!seam_tsc_is_there()) {
		set_verdict(check, NO, "this machine is not " "x86-64");
		advise(check, "%s", "");
	} else if (check->verdict == YES && seam_tsc_flags() !=
		   (SEAM_TSC_CONSTANT | SEAM_TSC_NONSTOP)) {
		set_verdict(check, LIMITED, "the time stamp "
			    "counter does not run at one rate: durations may "
			    "be wrong");
	}
}

/* Without the first nothing can be recorded. */
static const struct check {
	const char *key, *title;
	void (*run)(struct check_result *check);	/* else check_event() */
	struct event_check event;
} checks[] = {
	{ "user-samples", "samples of user code", .event = {
		{ CLOCK, USER_CODE, .sample_type = PERF_SAMPLE_IP },
		.level = 2 } },
	{ "kernel-samples", "samples and stacks of the kernel", .event = {
		{ CLOCK, .sample_type = PERF_SAMPLE_IP }, .level = 1 } },
	{ "kernel-symbols", "names of kernel functions",
	  .run = check_kernel_names },
	{ "system-wide", "all processes at once", .event = {
		{ CLOCK, .sample_type = PERF_SAMPLE_IP }, .of_all = true } },
	{ "hardware-cycles", "hardware cycles", .event = {
		{ CYCLES, USER_CODE, .sample_type = PERF_SAMPLE_IP },
		.needs = "a machine, or a virtual machine, with a PMU; "
			 "cpu-clock is used in its place" } },
	{ "precise", "precise hardware samples", .event = {
		{ CYCLES, USER_CODE, .sample_type = PERF_SAMPLE_IP,
		  .precise_ip = 1 },
		.needs = "a CPU with PEBS, IBS or SPE" } },
	{ "aux", "hardware traces (AUX buffer)", .run = check_aux },
	{ "tracepoints", "tracepoints of the kernel",
	  .run = check_tracepoints },
	{ "build-ids", "build ids of mapped files", .event = {
		{ CLOCK, USER_CODE, .sample_type = PERF_SAMPLE_IP,
		  .mmap = 1, .mmap2 = 1, .build_id = 1 },
		.needs = "Linux 5.12" } },
	{ "lost-counts", "exact counts of lost records", .event = {
		{ CLOCK, USER_CODE, .sample_type = PERF_SAMPLE_IP,
		  .read_format = PERF_FORMAT_LOST },
		.needs = "Linux 6.0" } },
	{ "ring-space", "ring space", .run = check_ring_space },
	{ "stacks", "stacks without frame pointers", .run = check_stacks },
	{ "waits", "waits of threads (--off-cpu)", .run = check_waits },
	{ "lua-stacks", "Lua stacks", .run = check_sampler },
	{ "calls", "calls of functions", .run = check_calls },
	{ "sample-rate", "sample rate", .run = check_rate },
	{ "descriptors", "descriptors", .run = check_descriptors },
	{ "isolation", "ELF files read without rights",
	  .run = check_isolation },
};

/* Run check @i.  Check 0 is whether anything can be recorded at all. */
static void run_check(size_t i, struct check_result *check)
{
	*check = (struct check_result) {
		.key = checks[i].key, .title = checks[i].title,
	};
	if (checks[i].run)
		checks[i].run(check);
	else
		check_event(check, &checks[i].event);
}

/*
 * Whether event @i of seam_event_name() can be opened here, in user code if it
 * occurs there.
 */
static bool can_open(size_t i)
{
	const char *name = seam_event_name(i);
	struct seam_event event;

	seam_event_init(&event);
	if (seam_event_parse(&event, name, NULL) < 0)
		return false;
	event.attr.exclude_kernel = !seam_event_is_of_kernel(&event);
	event.attr.exclude_hv = 1;
	return try_event(&event.attr, OWN_THREAD, EVERY_CPU) == 0;
}

static void print_probe(const struct check_result *p)
{
	const char *verdict = verdicts[p->verdict];

	if (p->found[0])
		printf("%-7s  %-32s  %s\n", verdict, p->title, p->found);
	else
		printf("%-7s  %s\n", verdict, p->title);
	if (p->remedy[0])
		printf("         needs %s\n", p->remedy);
}

/* The events of one kind that open here, on as many lines as they take. */
static void print_events(const char *kind)
{
	int column = printf("\n%s events:", kind);
	size_t n = 0;

	for (size_t i = 0; seam_event_name(i); i++) {
		const char *name = seam_event_name(i);

		if (strcmp(seam_event_kind(i), kind) != 0 || !can_open(i))
			continue;
		if (column + 1 + (int)strlen(name) > WIDTH)
			column = printf("\n ") - 1;
		column += printf(" %s", name);
		n++;
	}
	printf("%s\n", n ? "" : " none");
}

static void print_text(void)
{
	static const char *const kinds[] = { "software", "hardware", "cache" };
	struct check_result p;
	struct utsname host;

	if (uname(&host) == 0)
		printf("Linux %s on %s, user %u\n\n", host.release,
		       host.machine, geteuid());
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(checks); i++) {
		run_check(i, &p);
		print_probe(&p);
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(kinds); i++)
		print_events(kinds[i]);
}

static void print_json(void)
{
	struct seam_json j = seam_json_make(stdout, true);
	struct utsname host = { 0 };
	struct check_result p;

	uname(&host);
	seam_json_open(&j, NULL, '{');
	seam_json_string(&j, "schema", "seam.doctor/1");
	seam_json_string(&j, "release", host.release);
	seam_json_string(&j, "arch", host.machine);
	seam_json_u64(&j, "uid", geteuid());
	seam_json_open(&j, "checks", '[');
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(checks); i++) {
		run_check(i, &p);
		seam_json_open(&j, NULL, '{');
		seam_json_string(&j, "check", p.key);
		seam_json_string(&j, "verdict", verdicts[p.verdict]);
		seam_json_string(&j, "found", p.found);
		seam_json_string(&j, "needs", p.remedy);
		seam_json_close(&j);
	}
	seam_json_close(&j);
	seam_json_open(&j, "events", '[');
	for (size_t i = 0; seam_event_name(i); i++) {
		seam_json_open(&j, NULL, '{');
		seam_json_string(&j, "name", seam_event_name(i));
		seam_json_string(&j, "kind", seam_event_kind(i));
		seam_json_bool(&j, "available", can_open(i));
		seam_json_close(&j);
	}
	seam_json_close(&j);
	seam_json_close(&j);
}

/* ---- how the stacks of a program can be recorded ---- */

/*
 * Reads a program or a library as the recorder reads files that are mapped
 * (cfi_file.h): bounded, without running it.
 */
struct program_stacks {
	char path[4096];	/* of the file that was read */
	char script[4096];	/* the script that it runs; "": none */
	uint64_t cfi_bytes;	/* .eh_frame and .debug_frame; 0: none */
	uint64_t n_functions;	/* with call frame information */
	/*
	 * Of functions that were looked at, those that begin with a frame
	 * pointer, in percent; -1: none was.
	 */
	int frame_pointer_percent;
	bool is_go, is_jvm;

	enum seam_call_graph needs;	/* NONE: nothing unwinds its code */
	const char *why;	/* static */
	char cost[200];
};

enum {
	LOOKED_AT = 1000,	/* functions, spread over the file */
	CODE_BYTES = 16,	/* of each */
	SMALLEST = 32,		/* smaller functions need no frame */
	FRAME_POINTER_PERCENT = 60,	/* from here on it has them */
	SEARCHED_BYTES = 65536,	/* for signs of Go and of a JVM */
	MAX_INTERPRETERS = 4,	/* of interpreters that are scripts */
};

/* A name without a slash is searched in PATH. */
static int find(char path[PATH_MAX], const char *name, struct seam_err *err)
{
	if (!strchr(name, '/') && !seam_file_find_program(name, path))
		return seam_err_set(err, -ENOENT, "no program '%s' in PATH",
				    name);
	if (strchr(name, '/'))
		snprintf(path, PATH_MAX, "%s", name);
	return 0;
}

/* The file that @name runs.  A descriptor, or -errno. */
static int open_program(struct program_stacks *p, const char *name,
			struct seam_err *err)
{
	char interpreter[PATH_MAX];
	int fd, r = find(p->path, name, err);

	for (int i = 0; r == 0 && i < MAX_INTERPRETERS &&
	     seam_file_interpreter(p->path, interpreter); i++) {
		if (i == 0)
			snprintf(p->script, sizeof(p->script), "%s", p->path);
		r = find(p->path, interpreter, err);
	}
	if (r < 0)
		return r;
	fd = seam_elf_open_fd(p->path, err);
	return fd < 0 ? seam_err_add(err, fd, "cannot read '%s'", p->path) :
	       fd;
}

/* Visit every @stride-th function of @eh that has a frame. */
static uint64_t visit(const struct seam_cfi_file *file, size_t stride,
		      uint64_t *n_looked_at, uint64_t *n_framed)
{
	struct seam_eh_fde fde = { 0 };
	uint64_t n = 0;
	size_t at = 0;
	int r;

	while ((r = seam_eh_frame_entry(&file->eh, at, &fde, &at)) >= 0) {
		uint8_t code[CODE_BYTES];
		size_t skip;

		if (r == 0)
			continue;
		if (n++ % stride || fde.end - fde.start < SMALLEST ||
		    seam_cfi_file_code_before(file, fde.start + CODE_BYTES,
					      code, sizeof(code)) < CODE_BYTES)
			continue;
		++*n_looked_at;
		/* endbr64; push %rbp, and soon mov %rsp,%rbp */
		skip = memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0;
		*n_framed += code[skip] == 0x55 &&
			     memmem(code + skip, CODE_BYTES - skip,
				    "\x48\x89\xe5", 3);
	}
	return n;
}

/* Whether @text is in the bytes from @offset on, at a multiple of @align. */
static bool has_text(const struct seam_cfi_file *file, uint64_t offset,
		     const char *text, size_t align)
{
	char *bytes = malloc(SEARCHED_BYTES);
	ssize_t n = bytes ? pread(file->fd, bytes, SEARCHED_BYTES,
				  (off_t)offset) : 0;
	size_t size = strlen(text), at = 0;

	while ((ssize_t)(at + size) <= n && memcmp(bytes + at, text, size) != 0)
		at += align;
	free(bytes);
	return (ssize_t)(at + size) <= n;
}

static void decide(struct program_stacks *p)
{
	p->needs = SEAM_CALL_GRAPH_AUTO;
	if (p->is_jvm) {
		p->why = "compiled Java code has no frame pointers: start it "
			 "with -XX:+PreserveFramePointer";
	} else if (p->is_go) {
		p->why = "Go has frame pointers, but C code that it calls has "
			 "not; fp is enough for Go alone";
	} else if (p->frame_pointer_percent >= FRAME_POINTER_PERCENT) {
		p->why = "libraries may have no frame pointers; fp is enough "
			 "for code of the file itself";
	} else if (p->cfi_bytes) {
		p->why = "by call frame information: with fp callers would be "
			 "missing";
	} else {
		p->needs = SEAM_CALL_GRAPH_NONE;
		p->why = "neither call frame information nor known frame "
			 "pointers: its stacks end early";
		return;
	}
	/* Source: measurements of "./dev bench stacks"; perf's copies. */
	snprintf(p->cost, sizeof(p->cost), "auto: 10 to 25 us of the recorder "
		 "and 150 to 400 bytes a sample, 1 to 3 %% of a CPU at %d Hz; "
		 "fp: 1 us; dwarf: %d bytes", SEAM_STACK_PLAN_HZ,
		 SEAM_STACK_PLAN_DWARF_BYTES);
}

/*
 * Look at the program @name: a path, or a name in PATH; for a script at its
 * interpreter.  0, or -errno with the reason.
 */
static int look_at(struct program_stacks *program, const char *name,
		   struct seam_err *err)
{
	struct seam_cfi_file file = { .fd = -1 };
	uint64_t n_looked_at = 0, n_framed = 0;
	int fd, r;

	*program = (struct program_stacks) { 0 };
	fd = open_program(program, name, err);
	if (fd < 0)
		return fd;
	r = seam_cfi_file_open(&file, fd, err);
	if (r < 0)
		return seam_err_add(err, r, "cannot read '%s'", program->path);
	program->cfi_bytes = file.eh.entries.size + file.debug.entries.size;
	program->n_functions = visit(&file, SIZE_MAX, &n_looked_at, &n_framed);
	n_looked_at = n_framed = 0;
	visit(&file, program->n_functions / LOOKED_AT + 1, &n_looked_at,
	      &n_framed);
	program->frame_pointer_percent = n_looked_at ?
		(int)(100 * n_framed / n_looked_at) : -1;
	/* Source: debug/buildinfo of Go 1.22: where the data segment begins */
	for (size_t i = 0; i < file.segments.n; i++)
		program->is_go |= !file.segments.items[i].is_executable &&
			has_text(&file, file.segments.items[i].offset,
				 "\xff Go buildinf:", 16);
	/* a launcher, or the JVM itself */
	program->is_jvm = strcmp(seam_file_name(program->path),
				 "libjvm.so") == 0 ||
			  has_text(&file, 0, "libjli.so", 1);
	decide(program);
	seam_cfi_file_close(&file);
	return 0;
}

static void print_program(const struct program_stacks *p)
{
	if (p->script[0]) {
		seam_text_put(stdout, p->script, SEAM_TEXT_TERMINAL);
		printf(", a script of ");
	}
	seam_text_put(stdout, p->path, SEAM_TEXT_TERMINAL);
	printf("%s\n", p->is_go ? " (Go)" : p->is_jvm ? " (JVM)" : "");
	if (p->cfi_bytes)
		printf("  call frame information  %.1f KiB, %" PRIu64
		       " functions\n", (double)p->cfi_bytes / 1024,
		       p->n_functions);
	else
		printf("  call frame information  none\n");
	if (p->frame_pointer_percent >= 0)
		printf("  frame pointers          in %d %% of its functions\n",
		       p->frame_pointer_percent);
	else
		printf("  frame pointers          %s\n",
		       p->is_go ? "in all Go code" : "not known");
	printf("  stacks                  %s: %s\n",
	       p->needs == SEAM_CALL_GRAPH_AUTO ?
	       "--call-graph auto (the default)" : "nothing unwinds it",
	       p->why);
	if (p->cost[0])
		printf("  cost                    %s\n", p->cost);
}

static void json_program(struct seam_json *j, const struct program_stacks *p)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "path", p->path);
	if (p->script[0])
		seam_json_string(j, "script", p->script);
	seam_json_u64(j, "cfi_bytes", p->cfi_bytes);
	seam_json_u64(j, "functions", p->n_functions);
	seam_json_i64(j, "frame_pointer_percent", p->frame_pointer_percent);
	seam_json_bool(j, "go", p->is_go);
	seam_json_bool(j, "jvm", p->is_jvm);
	seam_json_string(j, "call_graph", p->needs == SEAM_CALL_GRAPH_AUTO ?
			 "auto" : "none");
	seam_json_string(j, "why", p->why);
	seam_json_string(j, "cost", p->cost);
	seam_json_close(j);
}

/* ---- the command ---- */

struct doctor_options {
	bool json;
};

static const struct seam_option options[] = {
	SEAM_OPTION(struct doctor_options, json, FLAG, 0, "json",
		    NULL, "print JSON (schema seam.doctor/1)"),
};

/* The programs that are named.  The exit status. */
static int report_programs(char **names, bool as_json)
{
	struct seam_json j = seam_json_make(stdout, true);
	int status = SEAM_EXIT_DONE;

	if (as_json) {
		seam_json_open(&j, NULL, '{');
		seam_json_string(&j, "schema", "seam.doctor/1");
		seam_json_open(&j, "programs", '[');
	}
	for (; *names; names++) {
		struct program_stacks p;
		struct seam_err err = { 0 };

		if (look_at(&p, *names, &err) < 0) {
			seam_command_failed(&err);
			status = SEAM_EXIT_FAILED;
		} else if (as_json) {
			json_program(&j, &p);
		} else {
			print_program(&p);
		}
	}
	if (as_json) {
		seam_json_close(&j);
		seam_json_close(&j);
	}
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct doctor_options o = { 0 };
	struct check_result anything;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	if (first < argc)
		return report_programs(argv + first, o.json);
	if (o.json)
		print_json();
	else
		print_text();
	run_check(0, &anything);
	return anything.verdict == NO ? SEAM_EXIT_FAILED :
	       SEAM_EXIT_DONE;
}

const struct seam_command seam_doctor_command = {
	.name = "doctor",
	.summary = "show what this machine and this user can record",
	.synopsis = "[--json] [PROGRAM...]",
	.description =
		"Tests each thing that a recording may need, and names the "
		"sysctl, the capability or the kernel that would enable what "
		"does not work.\n\n"
		"With PROGRAM, a path or a name in PATH, it looks at that "
		"program or library, or at the interpreter of a script: "
		"whether it has call frame information and frame pointers, "
		"whether it is a Go program or a JVM, and by which "
		"--call-graph of 'seam record' its stacks are complete.\n\n"
		"The exit status is 1 if nothing can be recorded, or if a "
		"PROGRAM cannot be read.",
	.examples = "seam doctor\twhat works here\n"
		"seam doctor python3 ./server\thow to record their stacks\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.run = run,
};
