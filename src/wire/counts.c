/* SPDX-License-Identifier: MIT */
/* counts.c - each count's place in the manifest, and its words; see counts.h */
#include "wire/counts.h"

#include <inttypes.h>
#include <stdio.h>

static void jit_received(const struct seam_counts *c, char *text, size_t cap)
{
	snprintf(text, cap, "; %" PRIu64 " were received (larger rings: "
		 "--jit-ring)", c->n[SEAM_COUNT_JIT_RECORDS]);
}

static void refusal(const struct seam_counts *c, char *text, size_t cap)
{
	if (c->refusal[0])
		snprintf(text, cap, ": %s", c->refusal);
}

static void program(const struct seam_counts *c, char *text, size_t cap)
{
	if (c->stopped[0])
		snprintf(text, cap, " ('%s' is one)", c->stopped);
}

static void offline_time(const struct seam_counts *c, char *text, size_t cap)
{
	snprintf(text, cap, ", for up to %.2f s",
		 (double)c->n[SEAM_COUNT_CPU_NS] / 1e9);
}

static void cpu(const struct seam_counts *c, char *text, size_t cap)
{
	if (c->first_cpu)
		snprintf(text, cap, " (cpu %d is one)", c->first_cpu);
}

/* With the kernel's own clock the time is not known. */
static void late_time(const struct seam_counts *c, char *text, size_t cap)
{
	if (c->n[SEAM_COUNT_LATE_NS])
		snprintf(text, cap, ", for %.2f ms in all and %.2f ms at most",
			 (double)c->n[SEAM_COUNT_LATE_NS] / 1e6,
			 (double)c->n[SEAM_COUNT_LONGEST_LATE_NS] / 1e6);
}

#define ROW(count, in, name, ...) \
	[SEAM_COUNT_##count] = { .section = (in), .key = (name), __VA_ARGS__ }
/* Without words. */
#define NUMBER(count, in, name) ROW(count, in, name, .one = NULL)

const struct seam_count_row seam_count_rows[SEAM_N_COUNTS] = {
	NUMBER(JIT_STREAMS, "jit", "streams"),
	NUMBER(JIT_RECORDS, "jit", "records"),
	ROW(JIT_LOST, "jit", "lost",
	    .cause = "JIT code not received",
	    .one = "piece of JIT code was lost, as the programs count them",
	    .many = "pieces of JIT code were lost, as the programs count them",
	    .put_detail = jit_received),
	ROW(JIT_BAD, "jit", "refused_groups",
	    .one = "record of JIT code was invalid: ignored",
	    .many = "records of JIT code were invalid: ignored"),
	ROW(JIT_UNOWNED, "jit", "refused_rings",
	    .one = "JIT stream ignored: owning process not verified",
	    .many = "JIT streams ignored: owning process not verified"),

	NUMBER(CALLS_RECORDS, "calls", "records"),
	NUMBER(CALLS_PROCESSES, "calls", "processes"),
	NUMBER(CALLS_THREADS, "calls", "threads"),
	NUMBER(CALLS_FUNCTIONS, "calls", "functions"),
	NUMBER(CALLS_FROZEN, "calls", "frozen"),
	ROW(CALLS_FULL, "calls", "area_full",
	    .cause = "calls not recorded",
	    .one = "record of calls was lost: its thread was faster than the "
		"recorder (fewer: --trace=GLOB, --trace-min, --trace-depth)",
	    .many = "records of calls were lost: their threads were faster "
		"than the recorder (fewer: --trace=GLOB, --trace-min, "
		"--trace-depth)"),
	ROW(CALLS_WITHOUT_RING, "calls", "without_area",
	    .cause = "calls not recorded",
	    .one = "record of calls was lost: its thread had no buffer",
	    .many = "records of calls were lost: their threads had no buffer"),
	ROW(CALLS_UNWRITTEN, "calls", "not_written",
	    .cause = "calls not written",
	    .one = "record of calls was not written",
	    .many = "records of calls were not written"),
	ROW(CALLS_BAD_BYTES, "calls", "damaged_bytes",
	    .cause = "calls damaged",
	    .one = "byte of calls was invalid: ignored",
	    .many = "bytes of calls were invalid: ignored"),
	ROW(CALLS_BAD, "calls", "refused",
	    .one = "record beside the calls was invalid, or one too many: "
		"ignored",
	    .many = "records beside the calls were invalid, or too many: "
		"ignored"),
	ROW(CALLS_UNOWNED, "calls", "refused_areas",
	    .cause = "calls of unknown threads",
	    .one = "buffer of calls ignored: owning thread not verified",
	    .many = "buffers of calls ignored: owning threads not verified"),
	ROW(CALLS_REFUSED, "calls", "refused_programs",
	    .cause = "programs without calls",
	    .one = "program's calls were not recorded: it could not connect",
	    .many = "programs' calls were not recorded: they could not "
		"connect"),

	ROW(THREADS_REFUSED, "not_recorded", "threads",
	    .cause = "threads not sampled",
	    .one = "thread was not sampled: cannot open the events",
	    .many = "threads were not sampled: cannot open the events",
	    .put_detail = refusal),
	ROW(PROGRAMS_STOPPED, "not_recorded", "programs",
	    .cause = "programs with another user's rights",
	    .one = "program ran with another user's rights: the kernel "
		"stopped its events; -a records it",
	    .many = "programs ran with another user's rights: the kernel "
		"stopped their events; -a records them",
	    .put_detail = program),
	ROW(CPUS_BACK, "not_recorded", "cpus",
	    .cause = "CPUs that went offline",
	    .one = "CPU went offline and came back: not recorded from then on",
	    .many = "CPUs went offline and came back: not recorded from then "
		"on",
	    .put_detail = offline_time),
	NUMBER(CPU_NS, "not_recorded", "cpu_ns"),
	ROW(CPUS_NEW, "not_recorded", "new_cpus",
	    .cause = "CPUs that came online",
	    .one = "CPU came online after the start: not recorded",
	    .many = "CPUs came online after the start: not recorded",
	    .put_detail = cpu),

	ROW(THREADS_UNSEEN, "late", "unseen_threads",
	    .one = "thread ended before its events were opened: not sampled",
	    .many = "threads ended before their events were opened: not "
		"sampled"),
	ROW(THREADS_LATE, "late", "threads",
	    .one = "thread that started later was not sampled at first",
	    .many = "threads that started later were not sampled at first",
	    .put_detail = late_time),
	NUMBER(LATE_NS, "late", "ns"),
	NUMBER(LONGEST_LATE_NS, "late", "longest_ns"),

	NUMBER(AUX_BYTES, "areas", "bytes"),
	ROW(AUX_TRUNCATED, "areas", "truncated",
	    .cause = "AUX buffer full",
	    .one = "time an AUX buffer was full: the trace has gaps (larger "
		"ones: -m ,SIZE)",
	    .many = "times an AUX buffer was full: the trace has gaps "
		"(larger ones: -m ,SIZE)",
	    .is_in_data = true),
	ROW(AUX_PARTIAL, "areas", "partial",
	    .one = "gap in the trace, as the PMU reports",
	    .many = "gaps in the trace, as the PMU reports",
	    .is_in_data = true),
	ROW(AUX_COLLISION, "areas", "collision",
	    .one = "collision of samples of the PMU: a longer period (-c) "
		"has fewer",
	    .many = "collisions of samples of the PMU: a longer period (-c) "
		"has fewer",
	    .is_in_data = true),

	ROW(THROTTLED, NULL, "throttled",
	    .one = "time sampling was throttled "
		"(kernel.perf_cpu_time_max_percent)",
	    .many = "times sampling was throttled "
		"(kernel.perf_cpu_time_max_percent)",
	    .is_always_written = true, .is_in_data = true),

	ROW(RING_FULL, "lost", "ring_full",
	    .many = "because rings were full (larger ones: -m)",
	    .cause = "ring full", .amount = SEAM_COUNT_IS_RECORDS,
	    .is_always_written = true, .is_in_data = true),
	ROW(UNWRITTEN, "lost", "not_written",
	    .many = "because of failed writes",
	    .cause = "not written", .amount = SEAM_COUNT_IS_RECORDS,
	    .is_always_written = true),
	ROW(OVER_SHARE, "lost", "over_share",
	    .many = "because one user maps too many files",
	    .cause = "mappings beyond their user's share",
	    .amount = SEAM_COUNT_IS_RECORDS, .is_always_written = true),
	ROW(PAUSED, "lost", "paused",
	    .many = "while snapshots were copied",
	    .cause = "paused", .amount = SEAM_COUNT_IS_RECORDS,
	    .is_always_written = true, .is_in_data = true),
	ROW(BAD_BYTES, "lost", "damaged_bytes",
	    .cause = "damaged in the ring",
	    .one = "byte in a ring was no record: ignored",
	    .many = "bytes in rings were no records: ignored",
	    .is_always_written = true, .amount = SEAM_COUNT_IS_BYTES),

	NUMBER(GUEST_PROCESSES, "guest", "processes"),
	NUMBER(GUEST_SAMPLES, "guest", "samples"),
	NUMBER(GUEST_WITH_GUEST, "guest", "with_guest"),
	NUMBER(GUEST_INCOMPLETE, "guest", "incomplete"),
	NUMBER(GUEST_SYMBOLS, "guest", "symbols"),
	ROW(GUEST_LOST, "guest", "lost",
	    .many = "because rings were full"),
	ROW(GUEST_BAD, "guest", "refused",
	    .many = "because they are invalid"),
	ROW(GUEST_THROTTLED, "guest", "throttled",
	    .many = "because sampling took too much time"),
	ROW(GUEST_NO_STACK, "guest", "no_stack",
	    .many = "because signal stacks are small"),
	ROW(GUEST_WITHOUT_RING, "guest", "without_ring",
	    .many = "of threads without a ring"),
	NUMBER(GUEST_TICKS, "guest", "ticks"),
	NUMBER(GUEST_DUE, "guest", "ticks_due"),
	NUMBER(GUEST_MERGED, "guest", "merged"),
	NUMBER(GUEST_ENDED, "guest", "ended"),
	NUMBER(GUEST_SUPERSEDED, "guest", "superseded"),

	NUMBER(KEPT_FILES, "kept", "files"),
	NUMBER(KEPT_FILE_BYTES, "kept", "file_bytes"),
	NUMBER(KEPT_DUMPS, "kept", "dumps"),
	NUMBER(KEPT_DUMP_BYTES, "kept", "dump_bytes"),
	ROW(KEPT_GONE, "kept", "missed",
	    .many = "were gone before they could be copied: names may be "
		"missing"),
	ROW(KEPT_REFUSED, "kept", "refused",
	    .many = "rejected as untrusted, or unreadable for the user of "
		"their program"),
	ROW(KEPT_LEASED, "kept", "leased",
	    .many = "not copied: another process has a lease on them"),
	ROW(KEPT_TIMED_OUT, "kept", "stuck",
	    .many = "not copied: reading them took too long"),
	ROW(KEPT_TOO_LARGE, "kept", "too_large",
	    .many = "not copied: too large"),
	ROW(KEPT_TOO_MANY, "kept", "too_many",
	    .many = "not copied: too many"),
	ROW(KEPT_NOT_WRITTEN, "kept", "not_written",
	    .many = "not copied: cannot write them into the recording"),
	ROW(KEPT_INTERRUPTED, "kept", "interrupted",
	    .many = "not copied: interrupted by a signal"),
};

bool seam_count_is_of(const struct seam_count_row *row, const char *section)
{
	return row->section && strcmp(row->section, section) == 0;
}

void seam_counts_add(struct seam_counts *counts, const struct seam_counts *from)
{
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		counts->n[i] += from->n[i];
}

bool seam_counts_any_lost(const struct seam_counts *counts)
{
	for (size_t i = 0; i < SEAM_N_COUNTS; i++)
		if (seam_count_rows[i].cause && counts->n[i])
			return true;
	return false;
}

bool seam_counts_describe(const struct seam_counts *counts, size_t i,
			  char *text)
{
	const struct seam_count_row *row = &seam_count_rows[i];
	uint64_t n = counts->n[i];
	int used;

	if (!n || !row->one)
		return false;
	used = snprintf(text, SEAM_COUNT_LINE, "%" PRIu64 " %s", n,
			n == 1 ? row->one : row->many);
	if (row->put_detail)
		row->put_detail(counts, text + used,
				SEAM_COUNT_LINE - (size_t)used);
	return true;
}

void seam_counts_list(const struct seam_counts *counts, const char *section,
		      char *text, size_t cap)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];

		if (!counts->n[i] || row->one || !row->many ||
		    !seam_count_is_of(row, section) || used >= cap)
			continue;
		used += (size_t)snprintf(text + used, cap - used,
					 "%s%" PRIu64 " %s", used ? ", " : "",
					 counts->n[i], row->many);
	}
}
