/* SPDX-License-Identifier: MIT */
/* aux_buffers.c - see aux_buffers.h */
#include "record/perf/aux_buffers.h"

#include "record/events/aux_pmu.h"
#include "wire/perf/perf_record.h"

#include <stdlib.h>

static const struct seam_event *first_event(const struct seam_session *s)
{
	for (size_t e = 0; e < s->events.n; e++)
		if (s->events.items[e].aux_kind)
			return &s->events.items[e];
	return NULL;
}

bool seam_aux_buffers_are_there(const struct seam_session *s)
{
	return first_event(s) != NULL;
}

/* All areas' events have the clock of the kernel: any will do. */
static struct seam_aux_clock read_clock(const struct seam_session *s)
{
	for (size_t i = 0; i < s->sources.rings.n; i++)
		if (s->sources.rings.items[i].aux.size)
			return seam_aux_clock_read(
				s->sources.rings.items[i].ring.control);
	return (struct seam_aux_clock) { 0 };
}

void seam_aux_buffers_describe(const struct seam_session *s,
			 struct seam_synth *synth)
{
	const struct seam_event *event = first_event(s);
	const struct seam_number_list *sampled = &s->sources.sampled;
	struct seam_aux_words words = { 0 };
	struct seam_aux_facts facts = {
		.event = event,
		.cpus = sampled->n ? sampled : &s->sources.cpus,
		.free_running = s->sources.free_running,
		.by_cpu = !s->sources.per_thread || sampled->n,
		.system_wide = s->system_wide,
	};

	if (!event)
		return;
	facts.clock = read_clock(s);
	if (facts.clock.is_known) {
		const uint64_t conversion[] = {
			facts.clock.shift, facts.clock.mult, facts.clock.zero,
		};

		seam_synth_words(synth, SEAM_PERF_TIME_CONV, conversion,
				 SEAM_ARRAY_SIZE(conversion));
	}
	if (event->aux_kind != SEAM_AUX_UNKNOWN) {
		uint64_t *kind = SEAM_ARRAY_PUSH(&words.list);

		if (kind)
			*kind = (uint64_t)event->aux_kind;
		seam_aux_pmu_info(&facts, &words);
		seam_synth_words(synth, SEAM_PERF_AUXTRACE_INFO,
				 words.list.items, words.list.n);
	}
	synth->no_memory |= words.no_memory;
	free(words.list.items);
}

int seam_aux_buffers_append(struct seam_session *s, struct seam_err *err)
{
	struct seam_sources *sources = &s->sources;
	ssize_t r = 0;

	seam_sources_hold_areas(sources, true);
	for (size_t i = 0; r >= 0 && i < sources->rings.n; i++)
		if (sources->rings.items[i].aux.size)
			r = seam_auxtrace_snapshot(&s->aux,
						   &sources->rings.items[i],
						   (uint32_t)i, false, err);
	return r < 0 ? (int)r : 0;
}
