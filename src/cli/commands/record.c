/* SPDX-License-Identifier: MIT */
/*
 * record.c - 'seam record': options and their values, a summary, exit status;
 * and 'seam snapshot'
 */
#include "base/clock.h"
#include "base/text.h"
#include "cli/recorded.h"
#include "record/perf/data_file.h"
#include "record/proc/procfs.h"
#include "record/record.h"
#include "record/services/jit_service.h"
#include "wire/perf/wait_events.h"
#include "wire/xray/trigger_text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_JIT_RING = 1 << 30,	/* bytes */
	DEFAULT_SNAPSHOTS = 10,
	MAX_ARGUMENTS = 6,	/* in registers; System V ABI, 3.2.3 */
	MAX_DEPTH = 256,	/* as many as a program takes */
};

/* The calls of programs.  NULL or 0: not given. */
struct trace_args {
	struct seam_option_list only;	/* "" where it has no value */
	struct seam_option_list except;
	const char *min;
	uint64_t depth, n_arguments;
};

/* The flight recorder of calls.  NULL or 0: not given. */
struct flight_args {
	const char *size;		/* "" where it has no value */
	struct seam_option_list triggers;
	uint64_t after_ms;
	uint64_t max_snapshots;
};

/* The parser fills both parts; NULL, 0 or false: not given. */
struct record_args {
	struct seam_record_options record;	/* values that need no check */
	struct seam_option_list events;
	const char *frequency;
	const char *call_graph, *layers;
	struct seam_target_args targets;
	const char *off_cpu;
	const char *compress;
	const char *ring, *jit_ring;
	uint64_t realtime;
	const char *aux_snapshots;
	const char *snapshot_every, *duration;
	struct trace_args trace;
	struct flight_args flight;
};

#define OPTION(...) SEAM_OPTION(struct record_args, __VA_ARGS__)
#define HEADING(text) { .help = (text), .kind = SEAM_OPTION_HEADING }

#define CALL_GRAPH_DETAIL						\
	"auto: with each sample the kernel copies the registers and the top " \
	"of the user stack, and the recorder unwinds them by call frame " \
	"information (.eh_frame, .debug_frame) or frame pointers; the file " \
	"has ordinary call chains, no copies. A copy has 48, 32, 24, 16 or 8 " \
	"KiB: as much as rings and frequency allow; auto,SIZE sets it (up " \
	"to 65528 bytes). It ends before a page that was never written to, " \
	"as in a frame of many KiB; the recorder has the kernel map such " \
	"pages, read-only and empty, for the samples that follow. " \
	"Callers beyond the copy are those of other samples, which readers " \
	"add and mark (--no-joins). "					\
	"fp: the kernel follows frame " \
	"pointers, which most programs do not have. dwarf,SIZE: the copies " \
	"(8192 bytes) stay in the file, as with perf record; readers unwind " \
	"them. none: samples have no call chain. Without this option it is " \
	"auto for events with a frequency and fp for those with a period " \
	"(-c); tracepoints and probes have no call chain. With -g it is " \
	"auto for all of them. In both cases it is fp on machines other than " \
	"x86-64 and, with a message, where the rings are too small for the " \
	"frequency. A value of this option that does not fit is refused. " \
	"With --overwrite the copies stay in the rings, which have up to 16 " \
	"MiB then (-m), and are unwound for each snapshot."

static const struct seam_option options[] = {
	HEADING("What to sample"),
	OPTION(events, STRINGS, 'e', "event", "EVENT",
	       "an event, or several with commas",
	       .detail = "A name of perf's, with modifiers after a colon: u "
	       "(user code only), k (kernel only), p to ppp (precise), G and H "
	       "(guests of KVM, the host), I (not idle), D (pinned). rNNN "
	       "is a raw event of the CPU. sched:sched_switch is a "
	       "tracepoint; its name may have * and ?. {a,b} is a group of "
	       "events that are counted together; {a,b}:S samples the first, "
	       "and what has a period or frequency of its own, and reads the "
	       "counts of all. event/period=N,freq=HZ,name=TEXT,"
	       "call-graph=HOW,max-stack=N,no-inherit/u sets these for one "
	       "event. uprobe:/path:symbol and uprobe:/path:0xoffset probe a "
	       "function of a file (all of that name), with %return its "
	       "return; kprobe:function, kprobe:function+offset and "
	       "kretprobe:function one of the kernel. Probes need root. "
	       "mem:ADDR[/LEN][:rwx[:u]] is a breakpoint at an address. "
	       "pmu/term=value/ is an event of any PMU of the kernel; PMUs "
	       "that write an AUX buffer (intel_pt, intel_bts, cs_etm, "
	       "arm_spe, hisi_ptt) are recorded for perf's decoders. The "
	       "default is cycles, or cpu-clock on a machine without that "
	       "counter. 'seam doctor' lists the events."),
	OPTION(record.filter, STRING, 0, "filter", "EXPR",
	       "record a tracepoint only if EXPR is true, such as 'id == 1'",
	       .detail = "EXPR uses the fields of the tracepoint's format. The "
	       "kernel applies it, to all tracepoints and probes of -e."),
	OPTION(frequency, STRING, 'F', "freq", "HZ",
	       "samples per second; 'max' is the maximum allowed",
	       .detail = "The default is 1000 where stacks are copied "
	       "(--call-graph), else 4000. The maximum is "
	       "kernel.perf_event_max_sample_rate."),
	OPTION(record.period, U64, 'c', "count", "PERIOD",
	       "a sample every PERIOD events, instead of a frequency",
	       .least = 1),
	OPTION(record.callchains, FLAG, 'g', NULL, NULL,
	       "record call chains of all events, also of tracepoints and "
	       "probes"),
	OPTION(call_graph, STRING, 0, "call-graph", "HOW",
	       "how call chains are recorded: auto, fp, dwarf or none",
	       .suggestions = "auto|fp|dwarf|none",
	       .detail = CALL_GRAPH_DETAIL),
	OPTION(record.data_addresses, FLAG, 'd', "data", NULL,
	       "record the addresses of memory accesses"),
	OPTION(off_cpu, STRING, 0, "off-cpu", "[MIN]",
	       "record when threads wait, for how long, and with which stack",
	       .detail = "Each time that a thread loses or gets a CPU is "
	       "recorded, and with the right to samples of the kernel "
	       "(kernel.perf_event_paranoid at most 1, or CAP_PERFMON) the "
	       "stack with which it loses it. Readers make two events of "
	       "this, in nanoseconds: off-cpu, while a thread was blocked, and "
	       "preempted, while it could run and had no CPU. Waits shorter "
	       "than MIN, such as 100us (1ms), are added up, by thread. Of "
	       "more than 2000 waits a second on a CPU only some have a stack; "
	       "times are exact. The stacks of others, and without that right "
	       "of all, that wait for MIN or longer are read from outside "
	       "while they wait, as far as the kernel lets the user read them "
	       "(ptrace(2)); the threads are not stopped. With --overwrite "
	       "and --flight-recorder the newest 200,000 switches are kept. "
	       "'seam report --event off-cpu', 'seam report --by wait'."),
	OPTION(record.off_cpu.wakers, FLAG, 0, "wakers", NULL,
	       "with --off-cpu: record which thread ended each wait",
	       .detail = "'seam report --by waker'. Of all threads of the "
	       "machine those are recorded that wake a recorded one, so this "
	       "needs CAP_PERFMON or kernel.perf_event_paranoid=-1, and "
	       "tracefs. Without these rights a message says so, and the "
	       "waits are recorded without."),
	OPTION(record.switch_events, FLAG, 0, "switch-events", NULL,
	       "record context switches"),
	OPTION(record.namespaces, FLAG, 0, "namespaces", NULL,
	       "record the namespaces of threads"),
	OPTION(record.cgroups, FLAG, 0, "cgroups", NULL,
	       "record the cgroup of each sample"),
	OPTION(layers, STRING, 0, "layers", "WHICH",
	       "with Lua stacks or without (auto)",
	       .choices = "auto|guest|native",
	       .detail = "guest: libseam-sampler is preloaded (LD_PRELOAD) into "
	       "COMMAND and all that it starts. In programs with LuaJIT each "
	       "thread takes samples of its own, with its Lua, native and "
	       "kernel frames in one stack; the recorder's samples of these "
	       "threads are dropped. auto, the default, does so where LuaJIT "
	       "is found: in COMMAND's file or a library that it needs, in "
	       "the interpreter of a script, or as a module of nginx. "
	       "Programs that load it otherwise, or that COMMAND starts, need "
	       "guest. native: no sampler. Lua is sampled at the rate of the "
	       "first event of CPU time; guest also where there is none, at "
	       "1 kHz. With AUX data, -C, -i, -p, -t and above 10 kHz there "
	       "are no Lua stacks, nor in a program that runs as another user, "
	       "in another pid namespace or in valgrind. With --overwrite and "
	       "--flight-recorder the newest 8 MiB are kept, about 16,000 "
	       "samples."),
	HEADING("Which processes and CPUs"),
	SEAM_TARGET_OPTIONS(struct record_args, targets, record),
	OPTION(targets.tids, STRING, 't', "tid", "TID",
	       "running threads, with their children"),
	OPTION(record.per_thread, FLAG, 0, "per-thread", NULL,
	       "a ring for each thread instead of each CPU",
	       .detail = "Events of such threads are not inherited. New "
	       "threads are added when their FORK record is read; how long "
	       "they ran unsampled before that is reported."),
	OPTION(record.no_inherit, FLAG, 'i', "no-inherit", NULL,
	       "do not record child processes and new threads"),
	HEADING("When to sample"),
	OPTION(record.delay_ms, U64, 'D', "delay", "MS",
	       "wait MS milliseconds before sampling"),
	OPTION(duration, STRING, 0, "duration", "SECONDS",
	       "end the recording after SECONDS; COMMAND continues"),
	OPTION(record.overwrite, FLAG, 0, "overwrite", NULL,
	       "keep only the newest samples in the rings",
	       .detail = "The contents of the rings are written when the "
	       "recording ends. SIGUSR2 to the recorder, 'seam snapshot' or "
	       "--snapshot-every write them to NAME.1.seam, NAME.2.seam and so "
	       "on, each a complete recording."),
	OPTION(aux_snapshots, STRING, 'S', "snapshot", "[BYTES]",
	       "overwrite AUX buffers, and take snapshots of them",
	       .detail = "Of each buffer, at most the newest BYTES, such as "
	       "256K. SIGUSR2 to the recorder, 'seam snapshot' or "
	       "--snapshot-every write a snapshot and all samples so far to "
	       "NAME.1.seam, NAME.2.seam and so on; the end of the recording "
	       "writes one to the recording."),
	OPTION(snapshot_every, STRING, 0, "snapshot-every", "SECONDS",
	       "with --overwrite, -S or --flight-recorder: take a snapshot "
	       "every SECONDS"),
	OPTION(record.max_bytes, SIZE, 0, "max-size", "SIZE",
	       "end the recording at this size, such as 100M; COMMAND "
	       "continues",
	       .detail = "The size of data, jit/, xray/ and elf/ together. Up "
	       "to a quarter is reserved for files that are copied at the end; "
	       "files that do not fit are left out, and counted."),
	HEADING("Which calls"),
	OPTION(trace.only, STRINGS, 0, "trace", "[GLOB,...]",
	       "record each call of the program's functions, or of those named",
	       .detail = "The exact layer, beside the samples: when each call "
	       "began and ended, in xray/PID.xray, at about 20 ns a call. For "
	       "programs and libraries that are built with clang "
	       "-fxray-instrument (with or without XRay's runtime; "
	       "-fxray-instruction-threshold=1 for small functions too), with "
	       "gcc -finstrument-functions, or, the beginning of calls alone, "
	       "-fpatchable-function-entry=16 or -pg -mfentry. libseam-fdr.so "
	       "is preloaded (LD_PRELOAD) into COMMAND and all that it "
	       "starts; statically linked programs cannot have it. GLOB is a "
	       "function's name, as written or as linked, and may have *, ? "
	       "and [; without one all functions are recorded. GLOB needs "
	       "symbols: of a stripped program those of its separate debug "
	       "file, where gdb looks for it and with the same build id. "
	       "Without GLOB its functions are recorded in any case. A call "
	       "takes 16 bytes of the log. What a thread "
	       "records faster than it is written is lost, counted, and "
	       "reported. Read with 'seam calls' and 'seam report', or "
	       "llvm-xray."),
	OPTION(trace.except, STRINGS, 0, "no-trace", "GLOB,...",
	       "do not record calls of these functions"),
	OPTION(trace.min, STRING, 0, "trace-min", "TIME",
	       "record no call that is shorter than TIME, such as 5us",
	       .detail = "A short call that made no recorded calls is taken "
	       "back when it ends. TIME has a unit: ns, us, ms or s."),
	OPTION(trace.n_arguments, U64, 0, "trace-args", "N",
	       "record the first N integer arguments of each call, up to 6",
	       .least = 1),
	OPTION(trace.depth, U64, 0, "trace-depth", "N",
	       "record no call below N others of its thread, up to 256",
	       .least = 1),
	HEADING("Newest calls"),
	OPTION(flight.size, STRING, 0, "flight-recorder", "[SIZE]",
	       "keep the newest calls of each thread, in SIZE of memory (1M)",
	       .detail = "A flight recorder of function calls, for hours: "
	       "like --trace, which it implies, but the oldest calls of a "
	       "thread are overwritten. It also implies --overwrite for the "
	       "samples, those of Lua too. Each trigger (--trigger), SIGUSR2 "
	       "to the recorder, 'seam snapshot' and --snapshot-every write "
	       "the calls and samples to NAME.1.seam, NAME.2.seam and so on, "
	       "while COMMAND goes on; those of its end, of a crash or of kill "
	       "-9 are in the recording NAME.seam. SIZE is rounded up to a "
	       "power of two from 256K to 1G; 1M has 130,000 calls and "
	       "returns. All threads that run have at most 1 GiB together, "
	       "further ones are not recorded, and counted. Of threads that "
	       "have ended, the newest 128 MiB are kept."),
	OPTION(flight.triggers, STRINGS, 0, "trigger", "EXPR",
	       "take a snapshot when EXPR happens; may be repeated",
	       .detail = "'FUNCTION>TIME': a call took longer than TIME, such "
	       "as 10ms, 500us or 2s; nothing else of the function is "
	       "changed. 'calls:FUNCTION': it was called. FUNCTION is a "
	       "name, or a pattern with *, ? and [. Implies "
	       "--flight-recorder. What led up to the trigger cannot be "
	       "overwritten before it is copied: until then a thread uses half "
	       "of its SIZE, then it records nothing, and the calls that are "
	       "left out are counted. A trigger that is met meanwhile is "
	       "listed in the same snapshot."),
	OPTION(flight.after_ms, U64, 0, "after", "MS",
	       "take it MS milliseconds after the trigger, with what followed"),
	OPTION(flight.max_snapshots, U64, 0, "max-snapshots", "N",
	       "at most N snapshots by triggers (10)", .least = 1,
	       .detail = "Later triggers are only counted. Snapshots that were "
	       "requested do not count."),
	HEADING("Output"),
	OPTION(record.output, STRING, 'o', "output", "NAME",
	       "the recording's folder (recording.seam)",
	       .detail = "An existing recording NAME is renamed to NAME.old, "
	       "and an existing NAME.old is removed at the end. Nothing else "
	       "is replaced: only a folder that has a 'meta.json' written by "
	       "Seam and no file that a recording does not have."),
	OPTION(record.keep_files, FLAG, 0, "keep-files", NULL,
	       "copy the programs and libraries that samples or calls are in",
	       .detail = "They are copied to elf/ in the recording, by build "
	       "id or contents, so that it can be read on another machine "
	       "or after they have changed. Files that were deleted or "
	       "replaced, or that only a container sees, are always copied."),
	OPTION(compress, STRING, 'z', "compression-level", "[LEVEL]",
	       "compress the recording, at level 1 to 22 of zstd (1)"),
	OPTION(ring, STRING, 'm', "mmap-pages", "PAGES[,AUX]",
	       "size of each ring: pages, bytes such as 512K, or 'auto'",
	       .detail = "Rounded up to a power of two of pages. The default "
	       "is 512K; where stacks are copied (--call-graph), the largest "
	       "of 4M, 2M, 1M and 512K that this user may lock. 'auto' is "
	       "as much as this user may lock, up to 16M. "
	       "AUX is the size of each AUX buffer (4M)."),
	OPTION(jit_ring, STRING, 0, "jit-ring", "SIZE",
	       "size of the ring of each process that streams JIT code (1M)",
	       .detail = "Programs linked with libseam-jitdump write the code "
	       "that they compile to a ring of the recorder instead of a file, "
	       "if they inherit SEAM_LINK from COMMAND. While the ring is "
	       "full, records are queued in the program's memory until its "
	       "next call; those in the queue when the program ends are lost, "
	       "and counted."),
	OPTION(record.watermark, SIZE, 0, "watermark", "BYTES",
	       "drain a ring when it has BYTES (a quarter of its size)"),
	OPTION(realtime, U64, 'r', "realtime", "PRIORITY",
	       "drain at this real-time priority (SCHED_FIFO), 1 to 99",
	       .detail = "For high rates of events on a busy machine. The "
	       "recorder still sleeps while there is nothing to drain, and "
	       "COMMAND does not inherit the priority. Needs CAP_SYS_NICE."),
};

/* ---- values of options ---- */

/* The functions below return 0, or SEAM_EXIT_USAGE after a message. */
static int usage(const char *text, const char *value)
{
	return seam_command_misused(&seam_record_command, "%s: '%s'", text,
				    value);
}

static int parse_frequency(const char *text, uint64_t *hz)
{
	const char *end;

	*hz = text ? UINT64_MAX : 0;
	if (!text || strcmp(text, "max") == 0)
		return 0;
	end = seam_text_number(text, text + strlen(text), 10, hz);
	if (!end || *end || *hz == 0)
		return usage("-F takes a number of samples per second, or "
			     "'max'", text);
	return 0;
}

/* A size of at most 1 TiB, so that rounding up cannot overflow. */
static bool parse_size(const char *text, uint64_t *n, bool *has_unit)
{
	return seam_command_size(text, n, has_unit) && *n <= UINT64_C(1) << 40;
}

/* "auto", "fp", "dwarf" or "none"; of the copies, ",SIZE" as well. */
static int parse_call_graph(const char *text, struct seam_record_options *out)
{
	static const char *const names[] = { "none", "fp", "auto", "dwarf" };
	size_t n = text ? strcspn(text, ",") : 0, i = 0;
	uint64_t bytes;
	bool has_unit;

	if (!text)
		return 0;
	while (i < SEAM_ARRAY_SIZE(names) &&
	       (strlen(names[i]) != n || memcmp(names[i], text, n) != 0))
		i++;
	if (i == SEAM_ARRAY_SIZE(names))
		return usage("--call-graph takes auto, fp, dwarf or none",
			     text);
	out->call_graph = (enum seam_call_graph)(SEAM_CALL_GRAPH_NONE + i);
	if (!text[n])
		return 0;
	if (out->call_graph < SEAM_CALL_GRAPH_AUTO ||
	    !parse_size(text + n + 1, &bytes, &has_unit) || bytes < 1024 ||
	    bytes > UINT16_MAX + 1)
		return usage("--call-graph takes auto,SIZE and dwarf,SIZE with "
			     "1024 to 65528 bytes", text);
	/* words of the stack, in a record of less than 64 KiB */
	bytes = bytes / 8 * 8;
	out->stack_bytes = bytes > SEAM_STACK_PLAN_MAX_BYTES ?
			   SEAM_STACK_PLAN_MAX_BYTES : (uint32_t)bytes;
	return 0;
}

static size_t round_ring(uint64_t bytes, const char *what)
{
	uint64_t rounded = (uint64_t)sysconf(_SC_PAGESIZE);

	while (rounded < bytes)
		rounded *= 2;
	if (rounded != bytes)
		seam_command_say("%s rounded up to a power of two of pages: "
				 "%" PRIu64 " KiB", what, rounded / 1024);
	return rounded;
}

/* A number of pages, or of bytes with a unit; rounded to a power of two. */
static int parse_pages(const char *text, const char *what, size_t *bytes)
{
	uint64_t n;
	bool has_unit;

	if (!parse_size(text, &n, &has_unit))
		return usage("-m takes a number of pages, a size such as "
			     "512K, or 'auto'", text);
	if (!has_unit)
		n *= (uint64_t)sysconf(_SC_PAGESIZE);
	*bytes = round_ring(n, what);
	return 0;
}

/* "RING", ",AUX" or "RING,AUX". */
static int parse_ring(const char *text, struct seam_record_options *out)
{
	const char *comma = text ? strchr(text, ',') : NULL;
	char ring[64];
	int r = 0;

	if (!text)
		return 0;
	snprintf(ring, sizeof(ring), "%.*s",
		 (int)(comma ? comma - text : (ptrdiff_t)strlen(text)), text);
	out->ring_auto = strcmp(ring, "auto") == 0;
	if (!out->ring_auto && (*ring || !comma))
		r = parse_pages(ring, "rings", &out->ring_bytes);
	if (r == 0 && comma)
		r = parse_pages(comma + 1, "AUX buffers", &out->aux_bytes);
	return r;
}

static int parse_aux_snapshots(const char *text,
			       struct seam_record_options *out)
{
	bool has_unit;

	out->aux_snapshots = text != NULL;
	if (text && *text &&
	    !parse_size(text, &out->aux_snapshot_bytes, &has_unit))
		return usage("-S takes a size such as 256K", text);
	if (out->aux_bytes && out->aux_snapshot_bytes > out->aux_bytes)
		return usage("-S is larger than an AUX buffer of -m", text);
	return 0;
}

static int parse_jit_ring(const char *text, struct seam_record_options *out)
{
	uint64_t n;
	bool has_unit;

	out->jit_ring_bytes = SEAM_RECORD_JIT_RING_BYTES;
	if (!text)
		return 0;
	if (!parse_size(text, &n, &has_unit) || n > MAX_JIT_RING)
		return usage("--jit-ring takes a size such as 1M, up to 1G",
			     text);
	out->jit_ring_bytes = round_ring(n, "JIT rings");
	return 0;
}

static int parse_duration(const char *text, const char *what, uint64_t *ns)
{
	char *end;
	double seconds;

	*ns = 0;
	if (!text)
		return 0;
	seconds = strtod(text, &end);
	if (end == text || *end || !(seconds > 0 && seconds < 1e9))
		return usage(what, text);
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

/* "", or the shortest wait with a row of its own. */
static int parse_off_cpu(const char *text, struct seam_record_options *out)
{
	out->off_cpu.is_used = text != NULL;
	if (!text)
		return 0;
	out->off_cpu.min_ns = SEAM_WAIT_MIN_NS;
	if (*text && (!seam_text_ns(text, &out->off_cpu.min_ns) ||
		      !out->off_cpu.min_ns))
		return usage("--off-cpu takes a time such as 100us", text);
	return 0;
}

static int parse_level(const char *text, int *level)
{
	char *end;
	long n;

	*level = text ? SEAM_COMPRESS_DEFAULT_LEVEL : 0;
	if (!text || !*text)
		return 0;
	n = strtol(text, &end, 10);
	if (*end || n < 1 || n > SEAM_COMPRESS_MAX_LEVEL)
		return usage("-z takes a level from 1 to 22", text);
	*level = (int)n;
	return 0;
}

/* ---- the flight recorder of calls ---- */

/* Why the options are refused; NULL: they are not. */
static const char *problem_of_flight(const struct flight_args *args,
				           const struct seam_record_options *out)
{
	if (args->after_ms && !args->triggers.n)
		return "--after needs --trigger";
	if (args->max_snapshots && !args->triggers.n)
		return "--max-snapshots needs --trigger";
	if (args->after_ms > SEAM_FLIGHT_MAX_AFTER_MS)
		return "--after takes at most 60000 milliseconds";
	if (args->triggers.n > SEAM_TRIGGER_MAX)
		return "too many triggers: 16 at most";
	if (!out->command)
		return "--flight-recorder needs a COMMAND: a process that runs "
		       "already cannot have libseam-fdr.so";
	if (out->per_thread)
		return "--per-thread and --flight-recorder cannot be combined";
	return NULL;
}

/* A power of two within the limits. */
static bool parse_flight_size(const char *text, uint64_t *bytes)
{
	uint64_t wanted;
	bool has_unit;

	*bytes = SEAM_FLIGHT_BYTES;
	if (!text || !*text)
		return true;
	if (!seam_command_size(text, &wanted, &has_unit) ||
	    wanted > SEAM_FLIGHT_MAX_BYTES)
		return false;
	*bytes = SEAM_FLIGHT_MIN_BYTES;
	while (*bytes < wanted)
		*bytes *= 2;
	if (*bytes != wanted)
		seam_command_say("--flight-recorder rounded up to a power of "
				 "two: %ju KiB", (uintmax_t)*bytes / 1024);
	return true;
}

/*
 * Complete @out->flight, which borrows from @args, and what it implies.
 */
static int check_flight(const struct flight_args *args,
			struct seam_record_options *out)
{
	struct seam_flight_options *flight = &out->flight;
	struct seam_trigger trigger;
	const char *problem;

	flight->is_used = args->size || args->triggers.n;
	if (!flight->is_used && !args->after_ms && !args->max_snapshots)
		return 0;
	problem = problem_of_flight(args, out);
	if (!problem && !parse_flight_size(args->size, &flight->bytes))
		problem = "--flight-recorder takes a size such as 4M, up to 1G";
	if (problem)
		return seam_command_misused(&seam_record_command, "%s", problem);
	flight->triggers = args->triggers.items;
	flight->n_triggers = args->triggers.n;
	flight->after_ns = args->after_ms * SEAM_NS_PER_MS;
	flight->max_snapshots = args->max_snapshots ?
				(unsigned int)args->max_snapshots :
				DEFAULT_SNAPSHOTS;
	out->overwrite = true;
	for (size_t i = 0; i < flight->n_triggers; i++) {
		problem = seam_trigger_parse(flight->triggers[i], &trigger);
		if (problem)
			return seam_command_misused(&seam_record_command,
						    "'%s' is no trigger: %s",
						    flight->triggers[i],
						    problem);
	}
	return 0;
}

/* ---- calls (--trace) ---- */

static const char *problem_of_trace(const struct trace_args *args,
				          const struct seam_record_options *out)
{
	const struct seam_trace_options *trace = &out->trace;

	if (!trace->is_used && !out->flight.is_used)
		return args->except.n || args->min || args->depth ||
		       args->n_arguments ?
		       "--no-trace, --trace-min, --trace-depth and "
		       "--trace-args need --trace or --flight-recorder" : NULL;
	if (!out->command)
		return "--trace needs a COMMAND: a process that runs already "
		       "cannot have libseam-fdr.so";
	if (out->pids.n || out->tids.n || out->by_user)
		return "--trace cannot be combined with -p, -t and --uid: it "
		       "is for what COMMAND runs";
	if (args->n_arguments > MAX_ARGUMENTS)
		return "--trace-args takes a number from 1 to 6";
	if (args->depth > MAX_DEPTH)
		return "--trace-depth takes a number from 1 to 256";
	return NULL;
}

/* Complete @out->trace, as check_flight(). */
static int check_trace(const struct trace_args *args,
		       struct seam_record_options *out)
{
	struct seam_trace_options *trace = &out->trace;
	const char *problem;

	trace->is_used = args->only.n > 0;
	trace->only = args->only.items;
	trace->n_only = args->only.n;
	trace->except = args->except.items;
	trace->n_except = args->except.n;
	trace->depth = (unsigned int)args->depth;
	trace->n_arguments = (unsigned int)args->n_arguments;
	problem = problem_of_trace(args, out);
	if (!problem && args->min && !seam_text_ns(args->min, &trace->min_ns))
		problem = "--trace-min takes a time such as 5us";
	if (!problem)
		return 0;
	return seam_command_misused(&seam_record_command, "%s", problem);
}

/* ---- all of them ---- */

/* Why the options cannot be combined; NULL: they can. */
static const char *contradiction(const struct record_args *a)
{
	const struct seam_record_options *o = &a->record;
	const struct seam_target_args *t = &a->targets;

	if (strcmp(o->output, "-") == 0)
		return "a recording is a folder: -o takes its name, not -";
	if (o->per_thread && (o->system_wide || (!o->command &&
			      !t->pids && !t->tids && !t->user)))
		return "--per-thread needs a COMMAND, -p, -t or --uid";
	if (o->per_thread && o->overwrite)
		return "--per-thread and --overwrite cannot be combined";
	if (a->snapshot_every && !o->overwrite && !a->aux_snapshots &&
	    !a->flight.size && !a->flight.triggers.n)
		return "--snapshot-every needs --overwrite, -S or "
		       "--flight-recorder";
	if (o->off_cpu.wakers && !a->off_cpu)
		return "--wakers needs --off-cpu";
	if (a->realtime > 99)
		return "-r takes a priority from 1 to 99";
	if (a->frequency && o->period)
		return "-F and -c cannot be combined";
	return NULL;
}

/*
 * Check @a, and complete @a->record, which borrows from @a and from @command
 * (NULL-terminated; empty: none), and has lists of pids, tids and CPUs for the
 * caller to free.
 */
static int check_args(struct record_args *a, char **command)
{
	struct seam_record_options *o = &a->record;
	const char *problem;

	o->command = *command ? command : NULL;
	o->events = a->events.items;
	o->n_events = a->events.n;
	o->realtime = (int)a->realtime;
	problem = contradiction(a);
	if (problem)
		return seam_command_misused(&seam_record_command, "%s", problem);
	o->layers = !a->layers || *a->layers == 'a' ? SEAM_LAYERS_AUTO :
		    *a->layers == 'g' ? SEAM_LAYERS_GUEST : SEAM_LAYERS_NATIVE;
	if (seam_targets_read(&seam_record_command, &a->targets, o) ||
	    check_flight(&a->flight, o) || parse_call_graph(a->call_graph, o) ||
	    check_trace(&a->trace, o) ||
	    parse_off_cpu(a->off_cpu, o) ||
	    parse_frequency(a->frequency, &o->frequency_hz) ||
	    parse_level(a->compress, &o->compress_level) ||
	    parse_duration(a->duration, "--duration takes a number of seconds",
			   &o->duration_ns) ||
	    parse_duration(a->snapshot_every, "--snapshot-every takes a number "
			   "of seconds", &o->snapshot_ns) ||
	    parse_ring(a->ring, o) || parse_jit_ring(a->jit_ring, o) ||
	    parse_aux_snapshots(a->aux_snapshots, o))
		return SEAM_EXIT_USAGE;
	return 0;
}

/* ---- the result ---- */

static void say(void *context, bool verbose, const char *text)
{
	(void)context;
	if (!verbose || seam_command_verbose())
		seam_command_say("%s", text);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_size(char *buf, size_t cap, uint64_t bytes)
{
	if (bytes < 1 << 20)
		snprintf(buf, cap, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buf, cap, "%.1f MiB", (double)bytes / (1 << 20));
}

/* By cause, and by event if there are several. */
static void report_losses(const struct seam_record_result *r)
{
	uint64_t lost = 0, produced = 0;
	char why[300];

	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_count_rows[i].amount == SEAM_COUNT_IS_RECORDS)
			lost += r->counts.n[i];
	if (!lost)
		return;
	for (size_t i = 0; i < r->n_events; i++)
		produced += r->events[i].n_samples;
	produced += lost;
	seam_counts_list(&r->counts, "lost", why, sizeof(why));
	seam_command_say("lost %" PRIu64 " record%s (%.2f %%): %s", lost,
		plural(lost),
		100.0 * (double)lost / (double)produced, why);
	for (size_t i = 0; r->n_events > 1 && i < r->n_events; i++) {
		const struct seam_record_event *event = &r->events[i];

		if (event->n_lost)
			seam_command_say("  %s: lost %" PRIu64 " (%.2f %%)",
				event->name, event->n_lost,
				100.0 * (double)event->n_lost /
				(double)(event->n_lost + event->n_samples));
	}
}

/* Why many stacks are incomplete. */
static void report_stacks(const struct seam_record_result *r)
{
	const struct seam_stack_counts *stacks = &r->stacks;
	struct seam_stack_counts all = *stacks;
	char text[600];

	/* those of a sampler are of this recording too */
	all.n_ended[SEAM_STACK_COMPLETE] +=
		r->counts.n[SEAM_COUNT_GUEST_SAMPLES] -
		r->counts.n[SEAM_COUNT_GUEST_INCOMPLETE];
	if (seam_stack_counts_advise(&all, text, sizeof(text)))
		seam_command_say("%s", text);
	if (!seam_command_verbose() || !seam_stack_counts_total(stacks))
		return;
	seam_command_say("%.2f %% of %" PRIu64 " user stacks are complete",
			 seam_stack_counts_percent(stacks),
			 seam_stack_counts_total(stacks));
}

/* Samples of samplers: how many have Lua stacks, and what is missing. */
static void report_guest(const struct seam_counts *counts)
{
	const uint64_t *n = counts->n;
	char why[300];

	if (!n[SEAM_COUNT_GUEST_SAMPLES] && !n[SEAM_COUNT_GUEST_BAD])
		return;
	seam_counts_list(counts, "guest", why, sizeof(why));
	seam_command_say("%" PRIu64 " sample%s with Lua stacks, of %" PRIu64
			 " by libseam-sampler%s%s",
			 n[SEAM_COUNT_GUEST_WITH_GUEST],
			 plural(n[SEAM_COUNT_GUEST_WITH_GUEST]),
			 n[SEAM_COUNT_GUEST_SAMPLES],
			 why[0] ? "; skipped: " : "", why);
	if (!seam_command_verbose())
		return;
	seam_command_say("%" PRIu64 " ticks of CPU time were due, %" PRIu64
			 " are in samples; %" PRIu64 " were merged; %" PRIu64
			 " samples of the recorder are superseded",
			 n[SEAM_COUNT_GUEST_DUE], n[SEAM_COUNT_GUEST_TICKS],
			 n[SEAM_COUNT_GUEST_MERGED],
			 n[SEAM_COUNT_GUEST_SUPERSEDED]);
}

/* Of --trace; @place is the operand for the next command, "" or " NAME". */
static void report_calls(const struct seam_record_result *r, const char *place)
{
	uint64_t n_records = r->counts.n[SEAM_COUNT_CALLS_RECORDS];
	uint64_t n_functions = r->counts.n[SEAM_COUNT_CALLS_FUNCTIONS];
	uint64_t n_threads = r->counts.n[SEAM_COUNT_CALLS_THREADS];
	uint64_t n_frozen = r->counts.n[SEAM_COUNT_CALLS_FROZEN];
	char size[32];

	print_size(size, sizeof(size), r->calls_bytes);
	if (n_records)
		seam_command_say("%" PRIu64 " record%s of calls of %" PRIu64
				 " function%s, %" PRIu64 " thread%s, %s in "
				 "xray; next: seam calls%s", n_records,
				 plural(n_records), n_functions,
				 plural(n_functions), n_threads,
				 plural(n_threads), size, place);
	if (n_records && seam_command_verbose())
		seam_command_say("the time stamp counter runs at %.6f MHz",
				 (double)r->tsc_hz / 1e6);
	if (n_frozen)
		seam_command_say("%" PRIu64 " record%s of calls left out while "
				 "a trigger's were copied%s", n_frozen,
				 plural(n_frozen), n_records ? "" :
				 ": none came after the last snapshot");
}

/* Where the recording was moved to, as a relative path if below here. */
static const char *shown_place(const struct seam_record_result *r)
{
	char here[PATH_MAX];
	size_t n;

	if (!getcwd(here, sizeof(here)))
		return r->place;
	n = strlen(here);
	return strncmp(r->place, here, n) == 0 && r->place[n] == '/' ?
	       r->place + n + 1 : r->place;
}

static void summarize(const char *output, bool has_command,
		      const struct seam_record_result *r)
{
	const char *place = r->was_moved ? shown_place(r) : output;
	char size[32], operand[PATH_MAX + 2] = "", line[SEAM_COUNT_LINE];

	print_size(size, sizeof(size), r->bundle_bytes);
	if (strcmp(place, "recording.seam") != 0)
		snprintf(operand, sizeof(operand), " %s", place);
	if (!r->was_removed)
		seam_command_say("%" PRIu64 " sample%s in %.2f s, %s in "
			"'%s'%s%s", r->n_samples, plural(r->n_samples),
			(double)r->duration_ns / 1e9, size, place,
			r->n_samples ? "; next: seam report" : "",
			r->n_samples ? operand : "");
	if (r->was_moved)
		seam_command_say("the folder was moved there during the "
				 "recording");
	if (r->limit)
		seam_command_say("%s ended the recording%s", r->limit,
				 has_command ? "; COMMAND continues" : "");
	print_size(size, sizeof(size), r->counts.n[SEAM_COUNT_AUX_BYTES]);
	if (r->aux_event)	/* perf decodes it */
		seam_command_say("%s of '%s'; next: perf script --itrace=i1us "
				 "-i %s/data", size, r->aux_event, output);
	report_losses(r);
	report_stacks(r);
	report_guest(&r->counts);
	if (r->has_calls)
		report_calls(r, operand);
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_counts_describe(&r->counts, i, line))
			seam_command_say("%s", line);
}

/*
 * The exit status.  The recording has the command line, to which "seam" is
 * added.
 */
static int record_and_report(struct seam_record_options *what, int argc,
			     char **argv, struct seam_record_result *result)
{
	size_t n = (size_t)argc;
	const char **words = calloc(n + 1, sizeof(*words));
	struct seam_err err = { 0 };
	int r;

	if (words) {
		words[0] = "seam";
		memcpy(words + 1, argv, n * sizeof(*words));
		what->words = words;
		what->n_words = n + 1;
		r = seam_record(what, result, &err);
		free(words);
	} else {
		r = seam_err_no_memory(&err);
	}
	if (result->command.start_error) {
		seam_command_failed(&err);
		return seam_recorded_status(what, &result->command, false);
	}
	if (r < 0) {
		seam_err_add(&err, r, result->cut_short ?
			     "the recording in '%s' was cut short" :
			     "cannot record into '%s'", what->output);
		seam_command_failed(&err);
		if (!result->cut_short)
			return SEAM_EXIT_FAILED;
	}
	summarize(what->output, what->command != NULL, result);
	return seam_recorded_status(what, &result->command,
		seam_counts_any_lost(&result->counts) || result->cut_short ||
		result->skipped || result->has_no_calls);
}

static int run_record(const struct seam_command *self, int argc, char **argv)
{
	struct record_args args = {
		.record = { .output = "recording.seam", .note = say },
	};
	struct seam_record_result result = { 0 };
	int first, status = seam_command_parse(self, argc, argv, &args, &first);

	if (status)
		return status;
	status = check_args(&args, argv + first);
	if (!status)
		status = record_and_report(&args.record, argc, argv, &result);
	seam_record_result_fini(&result);
	seam_targets_fini(&args.record);
	return status;
}

const struct seam_command seam_record_command = {
	.name = "record",
	.summary = "record a program",
	.synopsis = "[options] [--] [COMMAND [ARG...]]",
	.description =
		"Runs COMMAND and records samples of it and of its child "
		"processes to a folder of standard files: 'data' in it is "
		"a perf.data file. Samples have call chains; programs "
		"without frame pointers have them too (--call-graph).\n\n"
		"The exit status is that of COMMAND; 3 if COMMAND returned "
		"0 and data was lost, or --trace recorded no call; 126 or "
		"127 if it could not be started. An interrupt from the "
		"terminal goes to COMMAND, and the recording ends when "
		"COMMAND does; a second interrupt ends the recording at "
		"once. SIGINT and SIGTERM end a recording even if they were "
		"ignored at its start, as a shell does for background jobs "
		"of a script; SIGHUP (nohup) and SIGQUIT stay ignored.\n\n"
		"Files that a later reader could not find are copied into "
		"the recording: programs and libraries that were deleted or "
		"replaced, or that only a container sees (elf/), and the "
		"files jit-PID.dump and perf-PID.map of JITs (jit/). They are "
		"opened with the rights of the user whose program mapped "
		"them. A signal ends the copying.",
	.limits =
		"Of files that are copied: 256 MiB a file and 1 GiB in elf/; "
		"512 MiB a file and 2 GiB in jit/; 8192 mapped files (1024 of "
		"a process) with 8 MiB of paths; 512 processes with JIT code; "
		"for processes that ran before the recording, 4 MiB of "
		"mappings each and 256 MiB in total; 60 seconds at the end. "
		"Files beyond these limits are left out "
		"and counted by cause, in the summary and under \"kept\" in "
		"meta.json.",
	.examples =
		"seam record -- make\trecord a build\n"
		"seam record -F 4000 -- ./server\t4000 samples a second\n"
		"seam record -p 4711,4712\trunning processes, until Ctrl-C\n"
		"seam record -p 4711 -- sleep 10\tthe same for 10 seconds\n"
		"seam record -a -C 0 --duration 10\teverything on CPU 0 for "
		"10 seconds\n"
		"seam record -a -G /system.slice/nginx.service\tthe threads "
		"of a service or container\n"
		"seam record -e 'sched:sched_*' -e cpu-clock -- make\tall "
		"tracepoints of the scheduler, and samples\n"
		"seam record --off-cpu -- ./server\tsamples, and where threads "
		"wait\n"
		"seam record --overwrite -p 4711\tkeep the newest samples; "
		"then: seam snapshot recording.seam\n"
		"seam record -e uprobe:/bin/bash:xmalloc -g -- bash -c ls"
		"\teach call of a function\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.takes_command = true,
	.run = run_record,
};

/* ---- 'seam snapshot': request a snapshot from a recorder ---- */

static int run_snapshot(const struct seam_command *self, int argc, char **argv)
{
	char path[PATH_MAX + 16];
	struct seam_err err = { 0 };
	int first, status = seam_command_parse(self, argc, argv, NULL, &first);

	if (status)
		return status;
	if (argc - first > 1)
		return seam_command_misused(self, "one recorder at a time");
	if (seam_snapshot_request(first < argc ? argv[first] : "recording.seam",
				  path, sizeof(path), &err) < 0)
		return seam_command_failed(&err);
	seam_text_put(stdout, path, SEAM_TEXT_TERMINAL);
	putchar('\n');
	return SEAM_EXIT_DONE;
}

const struct seam_command seam_snapshot_command = {
	.name = "snapshot",
	.summary = "request a snapshot from a flight recorder",
	.synopsis = "[PID|NAME.seam]",
	.description =
		"Requests a snapshot from 'seam record' with --overwrite, -S "
		"or --flight-recorder. The recorder is selected by its process "
		"id, by that of a process that it has started, or by its "
		"recording (recording.seam). Waits until the snapshot is "
		"complete and prints its name. The recording continues.",
	.examples =
		"seam snapshot\tof recording.seam in this folder\n"
		"seam report \"$(seam snapshot app.seam)\"\tthe newest "
		"samples\n",
	.run = run_snapshot,
};
