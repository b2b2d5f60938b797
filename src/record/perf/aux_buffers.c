/* SPDX-License-Identifier: MIT */
/* aux_buffers.c - see aux_buffers.h */
#include "record/perf/aux_buffers.h"

#include "record/events/aux_pmu.h"
#include "record/perf/auxtrace.h"
#include "wire/perf/perf_record.h"

#include <stdlib.h>

static const struct seam_event *first_event(const struct seam_sources *s)
{
	for (size_t e = 0; e < s->n_events; e++)
		if (s->events[e].aux_kind)
			return &s->events[e];
	return NULL;
}

/* All events with AUX buffers use the kernel's clock: any ring has it. */
static struct seam_aux_clock read_clock(const struct seam_sources *s)
{
	for (size_t i = 0; i < s->rings.n; i++)
		if (s->rings.items[i].aux.size)
			return seam_aux_clock_read(
				s->rings.items[i].ring.control);
	return (struct seam_aux_clock) { 0 };
}

void seam_aux_buffers_describe(const struct seam_sources *s,
			       struct seam_synth *synth)
{
	struct seam_aux_words words = { 0 };
	struct seam_aux_facts facts = {
		.event = first_event(s),
		.cpus = s->sampled.n ? &s->sampled : &s->cpus,
		.clock = read_clock(s),
		.snapshot_mode = s->aux_snapshots,
		.by_cpu = !s->per_thread || s->sampled.n,
		.system_wide = seam_sources_is_system_wide(s),
	};

	if (!facts.event)
		return;
	if (facts.clock.is_known) {
		const uint64_t conversion[] = {
			facts.clock.shift, facts.clock.mult, facts.clock.zero,
		};

		seam_synth_words(synth, SEAM_PERF_TIME_CONV, conversion,
				 SEAM_ARRAY_SIZE(conversion));
	}
	if (facts.event->aux_kind != SEAM_AUX_UNKNOWN) {
		uint64_t *kind = SEAM_ARRAY_PUSH(&words.list);

		if (kind)
			*kind = (uint64_t)facts.event->aux_kind;
		seam_aux_pmu_info(&facts, &words);
		seam_synth_words(synth, SEAM_PERF_AUXTRACE_INFO,
				 words.list.items, words.list.n);
	}
	synth->no_memory |= words.no_memory;
	free(words.list.items);
}

int seam_aux_buffers_append(struct seam_sources *s,
			    struct seam_data_file *file, struct seam_err *err)
{
	ssize_t r = 0;

	seam_sources_hold_aux(s, true);
	for (size_t i = 0; r >= 0 && i < s->rings.n; i++)
		if (s->rings.items[i].aux.size)
			r = seam_auxtrace_snapshot(file, &s->rings.items[i],
						   (uint32_t)i,
						   s->aux_snapshot_bytes,
						   err);
	return r < 0 ? (int)r : 0;
}
