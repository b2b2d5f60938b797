/* SPDX-License-Identifier: MIT */
/* record.c - 'seam record': options in, one recording, exit status out */
#include "cli/command.h"
#include "record/perf/compress.h"
#include "record/proc/targets.h"
#include "record/record.h"
#include "record/services/link_service.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* As a shell reports them; Source: POSIX.1-2017, 2.8.2. */
	EXIT_CANNOT_START = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128,
	MAX_JIT_RING = 1 << 30,	/* bytes */
};

struct record_options {
	struct seam_option_list events;
	const char *filter;
	const char *frequency;
	uint64_t period;
	bool callchains;
	const char *call_graph;
	bool data_addresses;
	bool switch_events;
	bool namespaces;
	bool cgroups;
	const char *pids;
	const char *tids;
	const char *cpus;
	bool system_wide;
	bool per_thread;
	bool no_inherit;
	const char *compress;
	const char *ring;
	const char *jit_ring;
	const char *watermark;
	uint64_t realtime;
	uint64_t delay_ms;
	bool overwrite;
	const char *aux_snapshots;
	const char *snapshot_every;
	const char *duration;
	const char *max_size;
	bool keep_files;
	const char *output;
};

#define OPTION(member, kind, letter, name, value, help, ...) \
	SEAM_OPTION(struct record_options, member, SEAM_OPTION_##kind, letter, name, \
		    value, help, __VA_ARGS__)
#define HEADING(text) { .help = (text), .kind = SEAM_OPTION_HEADING }

static const struct seam_option options[] = {
	HEADING("What to sample"),
	OPTION(events, STRINGS, 'e', "event", "EVENT",
	       "an event, or several with commas",
	       .detail = "A name of perf's, with modifiers behind a colon: u "
	       "(user code only), k (kernel only), p to ppp (precise), G and H "
	       "(guests of KVM, the host), I (not idle), D (pinned). rNNN "
	       "is a raw event of the CPU. sched:sched_switch is a "
	       "tracepoint; its name may hold * and ?. {a,b} is a group, counted "
	       "together; {a,b}:S samples its first event and reads all. "
	       "event/period=N,freq=HZ,name=TEXT,call-graph=fp,max-stack=N,"
	       "no-inherit/u has terms of its own. uprobe:/path:symbol and "
	       "uprobe:/path:0xoffset probe a function of a file, with "
	       "%return its return. mem:ADDR[/LEN][:rwx[:u]] watches an address. "
	       "pmu/term=value/ is an event of any PMU of the kernel; those "
	       "that write an AUX area (intel_pt, intel_bts, cs_etm, arm_spe, "
	       "hisi_ptt) are recorded for perf's decoders. Without "
	       "this option: cycles where the machine has them, else "
	       "cpu-clock. 'seam doctor' lists the events."),
	OPTION(filter, STRING, 0, "filter", "EXPR",
	       "only tracepoints of which this is true, such as 'id == 1'",
	       .detail = "In the fields of the tracepoint's format; it is "
	       "applied by the kernel, to all tracepoints of -e."),
	OPTION(frequency, STRING, 'F', "freq", "HZ",
	       "samples a second of the event; 'max' is the most allowed",
	       .detail = "The default is 4000. The most allowed is "
	       "kernel.perf_event_max_sample_rate."),
	OPTION(period, U64, 'c', "count", "PERIOD",
	       "a sample each PERIOD events, in place of a frequency",
	       .least = 1),
	OPTION(callchains, FLAG, 'g', NULL, NULL,
	       "record call chains, as --call-graph=fp"),
	OPTION(call_graph, STRING, 0, "call-graph", "HOW",
	       "how to record call chains", .choices = "fp|none"),
	OPTION(data_addresses, FLAG, 'd', "data", NULL,
	       "record the addresses of data that were accessed"),
	OPTION(switch_events, FLAG, 0, "switch-events", NULL,
	       "record each time that a thread gets or leaves a CPU"),
	OPTION(namespaces, FLAG, 0, "namespaces", NULL,
	       "record the namespaces that threads enter"),
	OPTION(cgroups, FLAG, 0, "cgroups", NULL,
	       "record the cgroup of each sample"),
	HEADING("What to watch"),
	OPTION(pids, STRING, 'p', "pid", "PID",
	       "processes that run, with all that they started and start",
	       .detail = "Several with commas. Until they end, or Ctrl-C; with a "
	       "COMMAND such as 'sleep 10', until it ends: it is not recorded "
	       "then."),
	OPTION(tids, STRING, 't', "tid", "TID",
	       "threads that run, with all that they start"),
	OPTION(system_wide, FLAG, 'a', "all-cpus", NULL,
	       "the whole machine; with a COMMAND, until it ends"),
	OPTION(cpus, STRING, 'C', "cpu", "CPUS",
	       "only on these CPUs, such as 0,2-3",
	       .detail = "Without anything else to watch: all that runs on "
	       "them. With a COMMAND, -p or -t: what these do there. perf "
	       "samples all that runs on the CPUs until COMMAND ends; that "
	       "is -a -C CPUS here."),
	OPTION(per_thread, FLAG, 0, "per-thread", NULL,
	       "a ring for each thread in place of each CPU",
	       .detail = "The kernel does not follow such a thread to those "
	       "that it starts; they are added when they are heard of, and "
	       "the time until then is told."),
	OPTION(no_inherit, FLAG, 'i', "no-inherit", NULL,
	       "only what is named, not the threads that it starts"),
	HEADING("When to sample"),
	OPTION(delay_ms, U64, 'D', "delay", "MS",
	       "milliseconds before the first sample"),
	OPTION(duration, STRING, 0, "duration", "SECONDS",
	       "end the recording after so long; COMMAND goes on"),
	OPTION(overwrite, FLAG, 0, "overwrite", NULL,
	       "keep the newest samples only, as a flight recorder does",
	       .detail = "What the rings hold at the end is in the recording. "
	       "SIGUSR2 to the recorder, 'seam snapshot' or --snapshot-every "
	       "put what they hold by then into NAME.1.seam, NAME.2.seam, "
	       "each a recording of its own."),
	OPTION(aux_snapshots, STRING, 'S', "snapshot", "[BYTES]",
	       "let AUX areas run free, and keep snapshots of them",
	       .detail = "At most the newest BYTES of each, such as 256K. "
	       "SIGUSR2 to the recorder, 'seam snapshot' or --snapshot-every "
	       "put them into NAME.1.seam, NAME.2.seam, beside all samples "
	       "until then; the end puts them into the recording."),
	OPTION(snapshot_every, STRING, 0, "snapshot-every", "SECONDS",
	       "with --overwrite or -S: make a snapshot at intervals"),
	OPTION(max_size, STRING, 0, "max-size", "SIZE",
	       "end it when its files are so large, such as 100M; COMMAND "
	       "goes on",
	       .detail = "Data, jit/ and elf/ together. At most a quarter is "
	       "left free for files that will be copied at the end; those "
	       "that do not fit are left out, and counted."),
	HEADING("Where to"),
	OPTION(output, STRING, 'o', "output", "NAME",
	       "the recording's folder (recording.seam)",
	       .detail = "A recording of that name is moved to NAME.old, and "
	       "the one that had that name is removed in the end. Nothing "
	       "else is ever replaced: only a folder with a 'meta.json' of "
	       "Seam's and no file of anybody's own."),
	OPTION(keep_files, FLAG, 0, "keep-files", NULL,
	       "copy the programs and libraries that samples are in",
	       .detail = "Into elf/ of the recording, by build id: it can be "
	       "read on another machine then, and after they have changed. "
	       "Files that are gone or cannot be seen from here are copied "
	       "in any case."),
	OPTION(compress, STRING, 'z', "compression-level", "[LEVEL]",
	       "compress the recording, at level 1 to 22 of zstd (1)"),
	OPTION(ring, STRING, 'm', "mmap-pages", "PAGES[,AUX]",
	       "size of each ring: pages, bytes such as 512K, or 'auto'",
	       .detail = "Rounded up to a power of two of pages. The default "
	       "is 512K. 'auto' takes what this user may lock, up to 16M. "
	       "Behind the comma: the size of each AUX area (4M)."),
	OPTION(jit_ring, STRING, 0, "jit-ring", "SIZE",
	       "ring of each process whose JIT streams its code (1M)",
	       .detail = "Programs linked with libseam-jitdump write the code "
	       "that they make into a ring of the recorder and not to a file, "
	       "as long as COMMAND passes SEAM_LINK on. Records that find a "
	       "full ring are queued in the program's memory; those that are "
	       "queued when the program ends are lost, and counted."),
	OPTION(watermark, STRING, 0, "watermark", "BYTES",
	       "drain a ring when it holds so much (a quarter of it)"),
	OPTION(realtime, U64, 'r', "realtime", "PRIORITY",
	       "drain at this real-time priority (SCHED_FIFO), 1 to 99",
	       .detail = "For floods on a machine that is busy otherwise. The "
	       "recorder sleeps between its rounds, and COMMAND does not "
	       "inherit it. Needs CAP_SYS_NICE."),
};

static void say(void *context, bool verbose, const char *text)
{
	(void)context;
	if (!verbose || seam_command_verbose())
		seam_command_say("%s", text);
}

static int usage(const char *text, const char *value)
{
	seam_command_misused(&seam_record_command, "%s: '%s'", text, value);
	return -EINVAL;
}

static int parse_frequency(const char *text, uint64_t *hz)
{
	char *end;

	*hz = SEAM_RECORD_FREQUENCY_HZ;
	if (!text)
		return 0;
	if (strcmp(text, "max") == 0) {
		*hz = UINT64_MAX;
		return 0;
	}
	errno = 0;
	*hz = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || *hz == 0)
		return usage("-F takes a number of samples a second, or 'max'",
			     text);
	return 0;
}

/* "4", "512K", "1M", "2G": true, the number, and whether it had a unit. */
static bool parse_size(const char *text, uint64_t *n, bool *has_unit)
{
	static const char units[] = "BKMG";
	const char *unit;
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	if (errno || text[0] < '0' || text[0] > '9' || *n == 0 ||
	    (*end && (!unit || end[1])) || *n > UINT64_C(1) << 30)
		return false;
	*has_unit = unit;
	if (unit)
		*n <<= 10 * (unit - units);
	return true;
}

static size_t round_ring(uint64_t bytes, const char *what)
{
	uint64_t rounded = (uint64_t)sysconf(_SC_PAGESIZE);

	while (rounded < bytes)
		rounded *= 2;
	if (rounded != bytes)
		seam_command_say("%s have a power of two of pages: taking "
				 "%" PRIu64 " KiB", what, rounded / 1024);
	return rounded;
}

/* A number of pages, or of bytes with a unit; a power of two in the end. */
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

	out->ring_bytes = SEAM_RECORD_RING_BYTES;
	if (!text)
		return 0;
	snprintf(ring, sizeof(ring), "%.*s",
		 (int)(comma ? comma - text : (ptrdiff_t)strlen(text)), text);
	out->ring_auto = strcmp(ring, "auto") == 0;
	if (!out->ring_auto && (*ring || !comma))
		r = parse_pages(ring, "rings", &out->ring_bytes);
	if (r == 0 && comma)
		r = parse_pages(comma + 1, "AUX areas", &out->aux_bytes);
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
		return usage("-S asks for more than an AUX area of -m holds",
			     text);
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
	out->jit_ring_bytes = round_ring(n, "rings of JITs");
	return 0;
}

static int parse_bytes(const char *text, const char *what, uint64_t *bytes)
{
	bool has_unit;

	*bytes = 0;
	if (text && !parse_size(text, bytes, &has_unit))
		return usage(what, text);
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

static int parse_targets(const struct record_options *o,
			 struct seam_record_options *out)
{
	if (o->pids && seam_targets_parse(&out->pids, o->pids) < 0)
		return usage("-p takes ids of processes", o->pids);
	if (o->tids && seam_targets_parse(&out->tids, o->tids) < 0)
		return usage("-t takes ids of threads", o->tids);
	if (o->cpus && (seam_procfs_list(&out->cpus, o->cpus) < 0 ||
			!out->cpus.n))
		return usage("-C takes CPUs such as 0,2-3", o->cpus);
	return 0;
}

/* What excludes what; NULL when all is well. */
static const char *contradiction(const struct record_options *o, bool has_command)
{
	if (strcmp(o->output, "-") == 0)
		return "a recording is a folder: -o takes its name, and not -";
	if (!has_command && !o->pids && !o->tids && !o->cpus &&
	    !o->system_wide)
		return "nothing to record: give a COMMAND, processes (-p) or "
		       "the whole machine (-a)";
	if (o->system_wide && (o->pids || o->tids))
		return "-a watches all processes, -p and -t those listed";
	if (o->per_thread && (o->system_wide ||
			      (!has_command && !o->pids && !o->tids)))
		return "--per-thread needs a COMMAND, -p or -t";
	if (o->per_thread && o->overwrite)
		return "--overwrite keeps a ring for each CPU";
	if (o->snapshot_every && !o->overwrite && !o->aux_snapshots)
		return "--snapshot-every needs --overwrite or -S";
	if (o->realtime > 99)
		return "-r takes a priority from 1 to 99";
	if (o->frequency && o->period)
		return "-F and -c exclude each other";
	return NULL;
}

static int interpret(const struct record_options *o, char **command,
		     struct seam_record_options *out)
{
	const char *problem = contradiction(o, *command);

	*out = (struct seam_record_options) {
		.events = o->events.items,
		.n_events = o->events.n,
		.filter = o->filter,
		.period = o->period,
		.callchains = o->call_graph ?
			      strcmp(o->call_graph, "fp") == 0 :
			      o->callchains,
		.data_addresses = o->data_addresses,
		.switch_events = o->switch_events,
		.namespaces = o->namespaces,
		.cgroups = o->cgroups,
		.system_wide = o->system_wide,
		.per_thread = o->per_thread,
		.no_inherit = o->no_inherit,
		.overwrite = o->overwrite,
		.keep_files = o->keep_files,
		.delay_ms = o->delay_ms,
		.realtime = (int)o->realtime,
		.output = o->output,
		.command = *command ? command : NULL,
	};
	if (problem) {
		seam_command_misused(&seam_record_command, "%s", problem);
		return -EINVAL;
	}
	if (parse_targets(o, out) < 0 ||
	    parse_frequency(o->frequency, &out->frequency_hz) < 0 ||
	    parse_level(o->compress, &out->compress_level) < 0 ||
	    parse_bytes(o->watermark, "--watermark takes a size",
			&out->watermark) < 0 ||
	    parse_bytes(o->max_size, "--max-size takes a size such as 100M",
			&out->max_bytes) < 0 ||
	    parse_duration(o->duration, "--duration takes a number of seconds",
			   &out->duration_ns) < 0 ||
	    parse_duration(o->snapshot_every, "--snapshot-every takes a number "
			   "of seconds", &out->snapshot_ns) < 0)
		return -EINVAL;
	if (parse_ring(o->ring, out) < 0 ||
	    parse_jit_ring(o->jit_ring, out) < 0)
		return -EINVAL;
	return parse_aux_snapshots(o->aux_snapshots, out);
}

static void print_size(char *buf, size_t cap, uint64_t bytes)
{
	if (bytes < 1 << 20)
		snprintf(buf, cap, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buf, cap, "%.1f MiB", (double)bytes / (1 << 20));
}

static void add_cause(char *why, size_t cap, uint64_t n, const char *cause)
{
	size_t used = strlen(why);

	if (n)
		snprintf(why + used, cap - used, "%s%" PRIu64 " %s",
			 used ? ", " : "", n, cause);
}

/* Which event lost how much, where there are several. */
static void tell_losses(const struct seam_record_result *r)
{
	const struct seam_losses *l = &r->losses;
	uint64_t lost = l->n_ring_full + l->n_paused + l->n_unwritten;
	char why[200] = "";

	if (!lost)
		return;
	add_cause(why, sizeof(why), l->n_ring_full,
		  "because rings were full (larger ones: -m)");
	add_cause(why, sizeof(why), l->n_unwritten, "because of failed writes");
	add_cause(why, sizeof(why), l->n_paused, "while snapshots were copied");
	seam_command_say("lost %" PRIu64 " record%s (%.2f %%): %s", lost,
		lost == 1 ? "" : "s",
		100.0 * (double)lost / (double)(lost + r->n_samples), why);
	for (size_t i = 0; r->n_events > 1 && i < r->n_events; i++) {
		const struct seam_record_event *event = &r->events[i];

		if (event->n_lost)
			seam_command_say("  %s: lost %" PRIu64 " (%.2f %%)",
				event->name, event->n_lost,
				100.0 * (double)event->n_lost /
				(double)(event->n_lost + event->n_samples));
	}
}

/* AUX data is decoded by perf. */
static void tell_areas(const struct record_options *o,
		       const struct seam_record_result *r)
{
	char size[32];

	if (!r->aux_event)
		return;
	print_size(size, sizeof(size), r->aux_bytes);
	seam_command_say("%s of '%s'; next: perf script --itrace=i1us -i "
			 "%s/data", size, r->aux_event, o->output);
}

/* A line for each other kind of loss. */
static void tell_other_losses(const struct seam_losses *losses)
{
	struct seam_losses_line line;

	for (size_t i = 0; i < SEAM_LOSSES_N_KINDS; i++)
		if (seam_losses_describe(losses, i, &line))
			seam_command_say("%s", line.text);
}

/* The path that leads from here to where the recording was moved. */
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

static void summarize(const struct record_options *o, bool has_command,
		      const struct seam_record_result *r)
{
	const char *place = r->was_moved ? shown_place(r) : o->output;
	bool is_named = strcmp(place, "recording.seam") != 0;
	char size[32], next[PATH_MAX + 64] = "";

	print_size(size, sizeof(size), r->bundle_bytes);
	if (r->n_samples)
		snprintf(next, sizeof(next), "; next: seam report%s%s",
			 is_named ? " " : "", is_named ? place : "");
	if (!r->was_removed)
		seam_command_say("%" PRIu64 " sample%s in %.2f s, %s in '%s'%s",
			r->n_samples, r->n_samples == 1 ? "" : "s",
			(double)r->duration_ns / 1e9, size, place, next);
	if (r->was_moved)
		seam_command_say("it was moved there while it was recorded");
	if (r->limit)
		seam_command_say("%s ended the recording%s", r->limit,
				 has_command ? "; COMMAND went on" : "");
	tell_areas(o, r);
	tell_losses(r);
	tell_other_losses(&r->losses);
}

/*
 * The command's own status where there is one; see command.h and DESIGN.
 * Where somebody did not want to wait for it, the signal stands for it.
 */
static int exit_status(const struct seam_record_options *what,
		       const struct seam_record_result *r)
{
	bool lossy = seam_losses_any(&r->losses) || r->cut_short || r->skipped;
	int status = SEAM_EXIT_DONE;

	if (what->command && !r->command_ended && !r->stopped_command)
		status = EXIT_SIGNAL + r->signal;
	else if (r->command_ended && !r->stopped_command)
		status = WIFSIGNALED(r->wait_status) ?
			 EXIT_SIGNAL + WTERMSIG(r->wait_status) :
			 WEXITSTATUS(r->wait_status);
	return status == SEAM_EXIT_DONE && lossy ? SEAM_EXIT_LOSSY : status;
}

/* The recording remembers the command line, of which argv lacks our name. */
static int record_words(struct seam_record_options *what, int argc,
			char **argv, struct seam_record_result *result,
			struct seam_err *err)
{
	size_t n = (size_t)argc;
	const char **words = calloc(n + 1, sizeof(*words));
	int r;

	if (!words)
		return seam_err_set(err, -ENOMEM, "out of memory");
	words[0] = "seam";
	for (size_t i = 0; i < n; i++)
		words[i + 1] = argv[i];
	what->words = words;
	what->n_words = n + 1;
	r = seam_record(what, result, err);
	free(words);
	return r;
}

/* Returns the exit status. */
static int record_and_tell(const struct record_options *o,
			   struct seam_record_options *what, int argc,
			   char **argv, struct seam_record_result *result)
{
	struct seam_err err = { 0 };
	int r = record_words(what, argc, argv, result, &err);

	if (result->start_error) {
		seam_command_failed(&err);
		return result->start_error == -ENOENT ? EXIT_NOT_FOUND :
		       EXIT_CANNOT_START;
	}
	if (r < 0) {
		seam_err_add(&err, r, result->cut_short ?
			     "the recording in '%s' was cut short" :
			     "cannot record into '%s'", o->output);
		seam_command_failed(&err);
		if (!result->cut_short)
			return SEAM_EXIT_FAILED;
	}
	summarize(o, what->command != NULL, result);
	return exit_status(what, result);
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct record_options o = { .output = "recording.seam" };
	struct seam_record_options what = { 0 };
	struct seam_record_result result = { 0 };
	int first, r;

	r = seam_command_parse(self, argc, argv, &o, &first);
	if (r != 0)
		return r < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (interpret(&o, argv + first, &what) == 0) {
		what.note = say;
		r = record_and_tell(&o, &what, argc, argv, &result);
	} else {
		r = SEAM_EXIT_USAGE;
	}
	seam_record_result_fini(&result);
	free(what.pids.items);
	free(what.tids.items);
	free(what.cpus.items);
	return r;
}

const struct seam_command seam_record_command = {
	.name = "record",
	.summary = "record a program",
	.synopsis = "[options] [--] [COMMAND [ARG...]]",
	.description =
		"Runs COMMAND and takes samples of it and of all that it "
		"starts, into a folder of standard files: 'data' in it is "
		"a perf.data file.\n\n"
		"The exit status is COMMAND's own; 3 where COMMAND returned "
		"0 and data was lost; 126 or 127 where it could not be "
		"started. An interrupt from the terminal is COMMAND's; the "
		"recording ends with it, and a second one does not wait. "
		"SIGINT and SIGTERM end a recording even where they were "
		"ignored when it was started, as a shell does with what a "
		"script puts into the background; SIGHUP (nohup) and SIGQUIT "
		"stay ignored then.\n\n"
		"Files that a later reader could not find are copied into "
		"the recording: programs and libraries that were deleted or "
		"replaced, or that only a container sees (elf/), and what "
		"JITs left in jit-PID.dump and perf-PID.map (jit/). They are "
		"opened with the rights of the user whose program names "
		"them. Limits: 256 MiB a file and 1 GiB in elf/; 512 MiB a "
		"file and 2 GiB in jit/; 8192 mapped files (1024 of a "
		"process, 16 paths of one file) with 8 MiB of paths; 512 "
		"processes with JIT code; 4 MiB of mappings of a process "
		"that ran before, 256 MiB of all; 60 seconds at the end. "
		"What is beyond them is left out and counted by cause, in "
		"the summary and under \"kept\" in meta.json. A signal ends "
		"the copying.",
	.examples =
		"seam record -- make\trecord a build\n"
		"seam record -g -F 10000 -- ./server\twith call chains, "
		"10000 samples a second\n"
		"seam record -p 4711,4712\tprocesses that run, until Ctrl-C\n"
		"seam record -p 4711 -- sleep 10\tthe same for 10 seconds\n"
		"seam record -a -C 0 --duration 10\tall that CPU 0 does in "
		"10 seconds\n"
		"seam record -e 'sched:sched_*' -e cpu-clock -- make\tall "
		"tracepoints of the scheduler beside samples\n"
		"seam record --overwrite -p 4711\ta flight recorder; then: "
		"seam snapshot recording.seam\n"
		"seam record -e uprobe:/bin/bash:xmalloc -g -- bash -c ls"
		"\teach call of a function\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.takes_command = true,
	.run = run,
};
