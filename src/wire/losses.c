/* SPDX-License-Identifier: MIT */
/* losses.c - each kind of loss in words; see losses.h */
#include "wire/losses.h"

#include <inttypes.h>
#include <stdio.h>

static void jit_received(const struct seam_losses *l, char *text, size_t cap)
{
	snprintf(text, cap, "; %" PRIu64 " were received (larger rings: "
		 "--jit-ring)", l->n_jit);
}

static void fewer_calls(const struct seam_losses *l, char *text, size_t cap)
{
	(void)l;
	snprintf(text, cap, " (fewer: --trace=GLOB, --trace-min, "
		 "--trace-depth)");
}

static void refusal(const struct seam_losses *l, char *text, size_t cap)
{
	if (l->refusal[0])
		snprintf(text, cap, ": %s", l->refusal);
}

static void program(const struct seam_losses *l, char *text, size_t cap)
{
	if (l->stopped[0])
		snprintf(text, cap, " ('%s' is one)", l->stopped);
}

static void offline_time(const struct seam_losses *l, char *text, size_t cap)
{
	snprintf(text, cap, ", for up to %.2f s", (double)l->cpu_ns / 1e9);
}

static void cpu(const struct seam_losses *l, char *text, size_t cap)
{
	if (l->first_cpu)
		snprintf(text, cap, " (cpu %d is one)", l->first_cpu);
}

/* With the kernel's own clock the time is not known. */
static void late_time(const struct seam_losses *l, char *text, size_t cap)
{
	if (l->late_ns)
		snprintf(text, cap, ", for %.2f ms in all and %.2f ms at most",
			 (double)l->late_ns / 1e6,
			 (double)l->longest_late_ns / 1e6);
}

static const struct kind {
	size_t offset;		/* of the count */
	const char *cause;
	const char *one, *many;	/* after the count */
	void (*put_detail)(const struct seam_losses *l, char *text,
			   size_t cap);
} kinds[SEAM_LOSSES_N_KINDS] = {
#define KIND(member, ...) { offsetof(struct seam_losses, member), __VA_ARGS__ }
	KIND(n_jit_lost, "JIT code not received",
	     "piece of JIT code was lost, as the programs count them",
	     "pieces of JIT code were lost, as the programs count them",
	     jit_received),
	KIND(n_jit_bad, NULL, "record of JIT code was invalid: ignored",
	     "records of JIT code were invalid: ignored", NULL),
	KIND(n_jit_unowned, NULL,
	     "JIT stream ignored: owning process not verified",
	     "JIT streams ignored: owning process not verified", NULL),
	KIND(n_calls_full, "calls not recorded",
	     "record of calls was lost: its thread was faster than the "
	     "recorder",
	     "records of calls were lost: their threads were faster than the "
	     "recorder", fewer_calls),
	KIND(n_calls_without_ring, "calls not recorded",
	     "record of calls was lost: its thread had no buffer",
	     "records of calls were lost: their threads had no buffer", NULL),
	KIND(n_calls_unwritten, "calls not written",
	     "record of calls was not written",
	     "records of calls were not written", NULL),
	KIND(n_calls_bad_bytes, "calls damaged",
	     "byte of calls was invalid: ignored",
	     "bytes of calls were invalid: ignored", NULL),
	KIND(n_calls_bad, NULL,
	     "record beside the calls was invalid, or one too many: ignored",
	     "records beside the calls were invalid, or too many: ignored",
	     NULL),
	KIND(n_calls_unowned, "calls of unknown threads",
	     "buffer of calls ignored: owning thread not verified",
	     "buffers of calls ignored: owning threads not verified", NULL),
	KIND(n_calls_refused, "programs without calls",
	     "program's calls were not recorded: it could not connect",
	     "programs' calls were not recorded: they could not connect", NULL),
	KIND(n_refused, "threads not sampled",
	     "thread was not sampled: cannot open the events",
	     "threads were not sampled: cannot open the events", refusal),
	KIND(n_stopped, "programs with another user's rights",
	     "program ran with another user's rights: the kernel stopped its "
	     "events; -a records it",
	     "programs ran with another user's rights: the kernel stopped "
	     "their events; -a records them", program),
	KIND(n_cpus_back, "CPUs that went offline",
	     "CPU went offline and came back: not recorded from then on",
	     "CPUs went offline and came back: not recorded from then on",
	     offline_time),
	KIND(n_cpus_new, "CPUs that came online",
	     "CPU came online after the start: not recorded",
	     "CPUs came online after the start: not recorded", cpu),
	KIND(n_unseen, NULL,
	     "thread ended before its events were opened: not sampled",
	     "threads ended before their events were opened: not sampled",
	     NULL),
	KIND(n_late, NULL,
	     "thread that started later was not sampled at first",
	     "threads that started later were not sampled at first",
	     late_time),
	KIND(n_truncated, "AUX buffer full",
	     "time an AUX buffer was full: the trace has gaps (larger ones: "
	     "-m ,SIZE)",
	     "times an AUX buffer was full: the trace has gaps (larger ones: "
	     "-m ,SIZE)", NULL),
	KIND(n_partial, NULL, "gap in the trace, as the PMU reports",
	     "gaps in the trace, as the PMU reports", NULL),
	KIND(n_collision, NULL,
	     "collision of samples of the PMU: a longer period (-c) has fewer",
	     "collisions of samples of the PMU: a longer period (-c) has "
	     "fewer", NULL),
	KIND(n_throttled, NULL, "time sampling was throttled "
	     "(kernel.perf_cpu_time_max_percent)", "times sampling was "
	     "throttled (kernel.perf_cpu_time_max_percent)", NULL),
#undef KIND
};

static uint64_t count_of(const struct seam_losses *losses,
			 const struct kind *kind)
{
	return *(const uint64_t *)((const char *)losses + kind->offset);
}

bool seam_losses_any(const struct seam_losses *losses)
{
	for (size_t i = 0; i < SEAM_LOSSES_N_KINDS; i++)
		if (kinds[i].cause && count_of(losses, &kinds[i]))
			return true;
	return losses->n_ring_full || losses->n_paused ||
	       losses->n_unwritten || losses->n_over_share ||
	       losses->n_bad_bytes;
}

bool seam_losses_describe(const struct seam_losses *losses, size_t i,
			  struct seam_losses_line *line)
{
	const struct kind *kind = &kinds[i];
	uint64_t n = count_of(losses, kind);
	int used;

	if (!n)
		return false;
	line->cause = kind->cause;
	used = snprintf(line->text, sizeof(line->text), "%" PRIu64 " %s", n,
			n == 1 ? kind->one : kind->many);
	if (kind->put_detail)
		kind->put_detail(losses, line->text + used,
				 sizeof(line->text) - (size_t)used);
	return true;
}
