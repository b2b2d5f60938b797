/* SPDX-License-Identifier: MIT */
/* perf_notes.c - counters to losses and notes; see perf_notes.h */
#include "model/perf/perf_notes.h"

#include <errno.h>
#include <inttypes.h>

static uint32_t put(struct seam_profile *p, const char *text)
{
	return seam_strings_put(&p->strings, text);
}

void seam_perf_note_damage(struct seam_profile *p,
			   const struct seam_perf_scan *scan)
{
	uint32_t data = put(p, "data");

	if (scan->n_damaged)
		seam_profile_lost(p, "record damaged", data, scan->n_damaged,
				  0);
	if (scan->n_unknown)
		seam_profile_lost(p, "event not described", data,
				  scan->n_unknown, 0);
	if (scan->error == -EBADMSG || scan->error == -ENODATA) {
		seam_profile_lost(p, scan->error == -ENODATA ?
				  "file cut" : "record damaged", data, 0,
				  scan->limit - scan->stop);
		seam_profile_note(p, "reading stopped %" PRIu64 " bytes before "
				  "the end of the data: %s",
				  scan->limit - scan->stop,
				  scan->why.n_causes ? scan->why.cause[0] : "");
	}
}

/* A ring that overwrites is never full: its losses are those of pauses. */
static void note_event(struct seam_profile *p,
		       const struct seam_profile_event *event,
		       uint64_t *n_paused)
{
	uint64_t paused = event->n_lost < *n_paused ? event->n_lost :
			  *n_paused;

	*n_paused -= paused;
	if (paused)
		seam_profile_lost(p, "paused for a snapshot", event->name,
				  paused, 0);
	if (event->n_lost > paused)
		seam_profile_lost(p, "ring full", event->name,
				  event->n_lost - paused, 0);
}

static void note_aux(const struct seam_sideband *sb)
{
	struct seam_profile *p = sb->profile;

	if (sb->aux.n_bytes)
		seam_profile_note(p, "there is a hardware trace of %" PRIu64
			" bytes, which 'perf script --itrace' decodes",
			sb->aux.n_bytes);
	if (sb->aux.n_truncated)
		seam_profile_note(p, "its AUX buffer was full %" PRIu64
			" times: the hardware trace has gaps",
			sb->aux.n_truncated);
	if (sb->aux.n_partial)
		seam_profile_note(p, "the PMU reports the hardware trace as "
			"partial in %" PRIu64 " places", sb->aux.n_partial);
	if (sb->aux.n_collision)
		seam_profile_note(p, "samples of the hardware trace collided "
			"%" PRIu64 " times", sb->aux.n_collision);
}

void seam_perf_note_losses(const struct seam_sideband *sb, uint64_t n_paused)
{
	struct seam_profile *p = sb->profile;
	uint64_t n_events = 0;

	for (size_t i = 0; i < p->events.n; i++) {
		n_events += p->events.items[i].n_lost;
		note_event(p, &p->events.items[i], &n_paused);
	}
	if (sb->n_lost_ring > n_events)
		seam_profile_lost(p, "ring full", put(p, "any event"),
				  sb->n_lost_ring - n_events, 0);
	if (sb->is_throttled)
		seam_profile_note(p, "sampling was throttled: there are fewer "
				  "samples than the frequency asked for");
	note_aux(sb);
	if (sb->data->n_missing_bytes)
		seam_profile_lost(p, "file cut", put(p, "data"), 0,
				  sb->data->n_missing_bytes);
	if (sb->data->is_cut)
		seam_profile_note(p, "the recording was not closed: its writer "
				  "was killed, or the file is cut");
}

/* Guest stacks that end early, if they are many: most of them why? */
static void note_incomplete(struct seam_profile *p)
{
	const uint64_t *n = p->guest_counts.n_guest;
	uint64_t whole = seam_guest_counts_total(&p->guest_counts) -
			 n[SEAM_GUEST_ABSENT];
	size_t most = SEAM_GUEST_CUT;

	for (size_t i = most; i < SEAM_GUEST_N_ENDS; i++)
		if (n[i] > n[most])
			most = i;
	if (whole && n[SEAM_GUEST_COMPLETE] < whole - whole / 10)
		seam_profile_note(p, "%.1f %% of the VM stacks are complete; "
				  "most others: %s",
				  100 * (double)n[SEAM_GUEST_COMPLETE] /
				  (double)whole,
				  seam_guest_end_text((enum seam_guest_end)
						      most));
}

void seam_perf_note_guest(struct seam_profile *p,
			  const struct seam_guest_symbols *symbols,
			  bool has_clock)
{
	const struct seam_guest_counts *counts = &p->guest_counts;

	if (counts->n_bad) {
		seam_profile_lost(p, "guest record damaged",
				  put(p, SEAM_GUEST_EVENT), 0, 0);
		seam_profile_note(p, "guest records that break their format: "
				  "%" PRIu64 "; samples with one show the "
				  "native stack alone", counts->n_bad);
	}
	if (symbols->n_nameless)
		seam_profile_note(p, "functions of VMs without names, whose "
				  "symbol records were lost: %" PRIu64,
				  symbols->n_nameless);
	if (seam_guest_counts_total(counts) && !has_clock)
		seam_profile_note(p, "no other clock was recorded: seam:guest "
				  "is an event of its own");
	note_incomplete(p);
}
