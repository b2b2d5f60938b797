/* SPDX-License-Identifier: MIT */
/* counts.c - each count's place in the manifest, and its words; see counts.h */
#include "wire/counts.h"

#include <inttypes.h>
#include <stdio.h>

#define ROW(count, in, name, ...) \
	[SEAM_COUNT_##count] = { .section = (in), .key = (name), __VA_ARGS__ }
/* Without words. */
#define NUMBER(count, in, name) ROW(count, in, name, .line = NULL)

const struct seam_count_row seam_count_rows[SEAM_N_COUNTS] = {
	NUMBER(JIT_STREAMS, "jit", "streams"),
	NUMBER(JIT_RECORDS, "jit", "records"),
	ROW(JIT_LOST, "jit", "lost",
	    .cause = "JIT code not received",
	    .line = "piece* of JIT code lost, as the programs count them"),
	ROW(JIT_BAD, "jit", "refused_groups",
	    .line = "record* of JIT code invalid: ignored"),
	ROW(JIT_UNOWNED, "jit", "refused_rings",
	    .line = "JIT stream* ignored: owning process not verified"),

	NUMBER(CALLS_RECORDS, "calls", "records"),
	NUMBER(CALLS_PROCESSES, "calls", "processes"),
	NUMBER(CALLS_THREADS, "calls", "threads"),
	NUMBER(CALLS_FUNCTIONS, "calls", "functions"),
	NUMBER(CALLS_FROZEN, "calls", "frozen"),
	ROW(CALLS_FULL, "calls", "area_full",
	    .cause = "calls not recorded",
	    .line = "record* of calls lost: a thread was faster than the "
		"recorder (fewer: --trace=GLOB, --trace-min, --trace-depth)"),
	ROW(CALLS_WITHOUT_RING, "calls", "without_area",
	    .cause = "calls not recorded",
	    .line = "record* of calls lost: no buffer for their thread"),
	ROW(CALLS_UNWRITTEN, "calls", "not_written",
	    .cause = "calls not written",
	    .line = "record* of calls not written"),
	ROW(CALLS_BAD_BYTES, "calls", "damaged_bytes",
	    .cause = "calls damaged",
	    .line = "byte* of calls invalid: ignored"),
	ROW(CALLS_BAD, "calls", "refused",
	    .line = "record* beside the calls invalid, or too many: ignored"),
	ROW(CALLS_UNOWNED, "calls", "refused_areas",
	    .cause = "calls of unknown threads",
	    .line = "buffer* of calls ignored: owning thread not verified"),
	ROW(CALLS_REFUSED, "calls", "refused_programs",
	    .cause = "programs without calls",
	    .line = "program* without calls: no connection to the recorder"),

	ROW(THREADS_REFUSED, "not_recorded", "threads",
	    .cause = "threads not sampled",
	    .line = "thread* not sampled: cannot open the events"),
	ROW(PROGRAMS_STOPPED, "not_recorded", "programs",
	    .cause = "programs with another user's rights",
	    .line = "program* ran with another user's rights: the kernel "
		"stopped the events; -a records such programs"),
	ROW(CPUS_BACK, "not_recorded", "cpus",
	    .cause = "CPUs that went offline",
	    .line = "CPU* went offline and came back: not recorded from then "
		"on"),
	NUMBER(CPU_NS, "not_recorded", "cpu_ns"),
	ROW(CPUS_NEW, "not_recorded", "new_cpus",
	    .cause = "CPUs that came online",
	    .line = "CPU* came online after the start: not recorded"),

	ROW(THREADS_UNSEEN, "late", "unseen_threads",
	    .line = "thread* ended before the events were opened: not sampled"),
	ROW(THREADS_LATE, "late", "threads",
	    .line = "thread* that started later: not sampled at first"),
	NUMBER(LATE_NS, "late", "ns"),
	NUMBER(LONGEST_LATE_NS, "late", "longest_ns"),

	NUMBER(AUX_BYTES, "areas", "bytes"),
	ROW(AUX_TRUNCATED, "areas", "truncated",
	    .cause = "AUX buffer full",
	    .line = "time* an AUX buffer was full: the trace has gaps "
		"(larger ones: -m ,SIZE)",
	    .is_in_data = true),
	ROW(AUX_PARTIAL, "areas", "partial",
	    .line = "gap* in the trace, as the PMU reports",
	    .is_in_data = true),
	ROW(AUX_COLLISION, "areas", "collision",
	    .line = "collision* of samples of the PMU: a longer period (-c) "
		"has fewer",
	    .is_in_data = true),

	ROW(THROTTLED, NULL, "throttled",
	    .line = "time* sampling was throttled "
		"(kernel.perf_cpu_time_max_percent)",
	    .is_always_written = true, .is_in_data = true),

	ROW(RING_FULL, "lost", "ring_full",
	    .part = "because rings were full (larger ones: -m)",
	    .cause = "ring full", .amount = SEAM_COUNT_IS_RECORDS,
	    .is_always_written = true, .is_in_data = true),
	ROW(UNWRITTEN, "lost", "not_written",
	    .part = "because of failed writes",
	    .cause = "not written", .amount = SEAM_COUNT_IS_RECORDS,
	    .is_always_written = true),
	ROW(OVER_SHARE, "lost", "over_share",
	    .part = "because one user maps too many files",
	    .cause = "mappings beyond their user's share",
	    .amount = SEAM_COUNT_IS_RECORDS, .is_always_written = true),
	ROW(PAUSED, "lost", "paused",
	    .part = "while snapshots were copied",
	    .cause = "paused", .amount = SEAM_COUNT_IS_RECORDS,
	    .is_always_written = true, .is_in_data = true),
	ROW(BAD_BYTES, "lost", "damaged_bytes",
	    .cause = "damaged in the ring",
	    .line = "byte* in rings invalid: ignored",
	    .is_always_written = true, .amount = SEAM_COUNT_IS_BYTES),

	NUMBER(GUEST_PROCESSES, "guest", "processes"),
	NUMBER(GUEST_SAMPLES, "guest", "samples"),
	NUMBER(GUEST_WITH_GUEST, "guest", "with_guest"),
	NUMBER(GUEST_INCOMPLETE, "guest", "incomplete"),
	NUMBER(GUEST_SYMBOLS, "guest", "symbols"),
	ROW(GUEST_LOST, "guest", "lost",
	    .part = "because rings were full"),
	ROW(GUEST_BAD, "guest", "refused",
	    .part = "because they are invalid"),
	ROW(GUEST_THROTTLED, "guest", "throttled",
	    .part = "because sampling took too much time"),
	ROW(GUEST_NO_STACK, "guest", "no_stack",
	    .part = "because signal stacks are small"),
	ROW(GUEST_WITHOUT_RING, "guest", "without_ring",
	    .part = "of threads without a ring"),
	NUMBER(GUEST_TICKS, "guest", "ticks"),
	NUMBER(GUEST_DUE, "guest", "ticks_due"),
	NUMBER(GUEST_MERGED, "guest", "merged"),
	NUMBER(GUEST_ENDED, "guest", "ended"),
	NUMBER(GUEST_SUPERSEDED, "guest", "superseded"),
	NUMBER(GUEST_FROM_NS, "guest", "from_ns"),

	NUMBER(OFF_CPU_MIN_NS, "off_cpu", "min_ns"),
	NUMBER(OFF_CPU_FROM_NS, "off_cpu", "from_ns"),
	ROW(OFF_CPU_SPENT, "off_cpu", "limited",
	    .line = "time* stacks were not recorded at switches, but read "
		"in long waits: more than 2000 waits a second on a CPU"),
	NUMBER(OFF_CPU_READ, "off_cpu", "read"),
	NUMBER(OFF_CPU_RAN, "off_cpu", "ran"),
	ROW(OFF_CPU_OVER_RATE, "off_cpu", "over_rate",
	    .line = "wait* not read: more than 4000 a second"),
	ROW(OFF_CPU_REFUSED, "off_cpu", "refused",
	    .line = "thread* whose waits may not be read for a stack: of "
		"another user, not dumpable, by kernel.yama.ptrace_scope, or "
		"without CONFIG_SCHED_INFO"),

	NUMBER(KEPT_FILES, "kept", "files"),
	NUMBER(KEPT_FILE_BYTES, "kept", "file_bytes"),
	NUMBER(KEPT_DUMPS, "kept", "dumps"),
	NUMBER(KEPT_DUMP_BYTES, "kept", "dump_bytes"),
	ROW(KEPT_GONE, "kept", "missed",
	    .part = "were gone before they could be copied: names may be "
		"missing"),
	ROW(KEPT_REFUSED, "kept", "refused",
	    .part = "rejected as untrusted, or unreadable for the user of "
		"their program"),
	ROW(KEPT_LEASED, "kept", "leased",
	    .part = "not copied: another process has a lease on them"),
	ROW(KEPT_TIMED_OUT, "kept", "stuck",
	    .part = "not copied: reading them took too long"),
	ROW(KEPT_TOO_LARGE, "kept", "too_large",
	    .part = "not copied: too large"),
	ROW(KEPT_TOO_MANY, "kept", "too_many",
	    .part = "not copied: too many"),
	ROW(KEPT_NOT_WRITTEN, "kept", "not_written",
	    .part = "not copied: cannot write them into the recording"),
	ROW(KEPT_INTERRUPTED, "kept", "interrupted",
	    .part = "not copied: interrupted by a signal"),
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

/* More about count @i, which is not 0. */
static void put_detail(const struct seam_counts *c, size_t i, char *text,
		       size_t cap)
{
	switch (i) {
	case SEAM_COUNT_JIT_LOST:
		snprintf(text, cap, "; %" PRIu64 " were received (larger "
			 "rings: --jit-ring)", c->n[SEAM_COUNT_JIT_RECORDS]);
		break;
	case SEAM_COUNT_THREADS_REFUSED:
		snprintf(text, cap, "%s%s", c->refusal[0] ? ": " : "",
			 c->refusal);
		break;
	case SEAM_COUNT_PROGRAMS_STOPPED:
		if (c->stopped[0])
			snprintf(text, cap, " ('%s' is one)", c->stopped);
		break;
	case SEAM_COUNT_CPUS_BACK:
		snprintf(text, cap, ", for up to %.2f s",
			 (double)c->n[SEAM_COUNT_CPU_NS] / 1e9);
		break;
	case SEAM_COUNT_CPUS_NEW:
		if (c->first_cpu)
			snprintf(text, cap, " (cpu %d is one)", c->first_cpu);
		break;
	case SEAM_COUNT_THREADS_LATE:
		/* with the kernel's own clock the time is not known */
		if (c->n[SEAM_COUNT_LATE_NS])
			snprintf(text, cap, ", for %.2f ms in all and %.2f ms "
				 "at most", (double)c->n[SEAM_COUNT_LATE_NS] / 1e6,
				 (double)c->n[SEAM_COUNT_LONGEST_LATE_NS] / 1e6);
		break;
	}
}

bool seam_counts_describe(const struct seam_counts *counts, size_t i,
			  char *text)
{
	const struct seam_count_row *row = &seam_count_rows[i];
	uint64_t n = counts->n[i];
	int used, noun;

	if (!n || !row->line)
		return false;
	noun = (int)strcspn(row->line, "*");
	used = snprintf(text, SEAM_COUNT_LINE, "%" PRIu64 " %.*s%s%s", n, noun,
			row->line, n == 1 ? "" : "s", row->line + noun + 1);
	put_detail(counts, i, text + used, SEAM_COUNT_LINE - (size_t)used);
	return true;
}

void seam_counts_list(const struct seam_counts *counts, const char *section,
		      char *text, size_t cap)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < SEAM_N_COUNTS; i++) {
		const struct seam_count_row *row = &seam_count_rows[i];

		if (!counts->n[i] || !row->part ||
		    !seam_count_is_of(row, section) || used >= cap)
			continue;
		used += (size_t)snprintf(text + used, cap - used,
					 "%s%" PRIu64 " %s", used ? ", " : "",
					 counts->n[i], row->part);
	}
}
