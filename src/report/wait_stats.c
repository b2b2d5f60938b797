/* SPDX-License-Identifier: MIT */
/* wait_stats.c - two tables; see wait_stats.h */
#include "report/wait_stats.h"

#include <stdlib.h>

enum { MAX_THREADS = 40 };	/* in text: those that lived longest */

static const struct {
	const char *key, *text;
} kinds[SEAM_N_WAIT_STACKS] = {
	[SEAM_WAIT_STACK_RECORDED] = { "recorded",
		"stack recorded when the thread lost its CPU" },
	[SEAM_WAIT_STACK_READ] = { "read",
		"stack read while the thread waited" },
	[SEAM_WAIT_STACK_UNKNOWN] = { "unknown", "stack not known" },
	[SEAM_WAIT_STACK_SHORT] = { "short",
		"in short waits, which are added up" },
};

static void put_kinds(const struct seam_profile *profile,
		      const struct seam_view *view,
		      const struct seam_profile_event *event)
{
	const struct seam_wait_counts *w = &event->waits;
	char ns[SEAM_NUMBER], n[SEAM_NUMBER], share[SEAM_NUMBER];
	uint64_t whole = 0;

	for (size_t i = 0; i < SEAM_N_WAIT_STACKS; i++)
		whole += w->ns[i];
	fputc('\n', view->out);
	seam_view_text(view, SEAM_STYLE_BOLD,
		       seam_profile_text(profile, event->name));
	fprintf(view->out, ": %s in %s\n",
		seam_format_weight(ns, whole, SEAM_UNIT_NS),
		seam_format_amount(n, event->n_samples, "wait"));
	for (size_t i = 0; i < SEAM_N_WAIT_STACKS; i++)
		if (w->n[i])
			fprintf(view->out, "%12s  %7s  %s: %s\n",
				seam_format_weight(ns, w->ns[i], SEAM_UNIT_NS),
				seam_format_percent(share, w->ns[i], whole),
				kinds[i].text,
				seam_format_count(n, w->n[i]));
	if (w->n_open)
		fprintf(view->out, "%12s  %7s  of these, in waits that began "
			"before the recording, or lasted until it ended: %s\n",
			seam_format_weight(ns, w->open_ns, SEAM_UNIT_NS),
			seam_format_percent(share, w->open_ns, whole),
			seam_format_count(n, w->n_open));
}

/* ---- threads ---- */

static uint64_t life_of(const struct seam_thread_time *time)
{
	return time->running_ns + time->blocked_ns + time->preempted_ns +
	       time->unknown_ns;
}

static int longest_first(const void *a, const void *b, void *context)
{
	const struct seam_thread_time *times = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	return SEAM_COMPARE(life_of(&times[k]), life_of(&times[i])) ?:
	       SEAM_COMPARE(i, k);
}

static void put_thread(const struct seam_profile *profile,
		       const struct seam_view *view, uint32_t i)
{
	const struct seam_thread_time *time = &profile->thread_times.items[i];
	const struct seam_thread *thread = &profile->threads.items[i];
	char buf[SEAM_NUMBER];
	const uint64_t ns[] = {
		time->running_ns, time->blocked_ns, time->preempted_ns,
		time->unknown_ns,
	};

	for (size_t k = 0; k < SEAM_ARRAY_SIZE(ns); k++)
		fprintf(view->out, "%10s  ", !ns[k] ? "-" :
			seam_format_weight(buf, ns[k], SEAM_UNIT_NS));
	fprintf(view->out, "%8d  ", thread->tid);
	seam_view_text(view, SEAM_STYLE_PLAIN,
		       seam_profile_text(profile, thread->name));
	fputc('\n', view->out);
}

static void put_threads(const struct seam_profile *profile,
			const struct seam_view *view)
{
	size_t n = profile->thread_times.n, shown = 0, n_lived = 0;
	uint32_t *ids = calloc(n + 1, sizeof(*ids));
	char buf[SEAM_NUMBER];

	for (uint32_t i = 0; ids && i < n; i++)
		if (life_of(&profile->thread_times.items[i]))
			ids[n_lived++] = i;
	if (n_lived) {
		qsort_r(ids, n_lived, sizeof(*ids), longest_first,
			profile->thread_times.items);
		seam_view_print(view, SEAM_STYLE_DIM, "\n%10s  %10s  %10s  "
				"%10s  %8s  %s\n", "RUNNING", "BLOCKED",
				"PREEMPTED", "NOT KNOWN", "TID", "THREAD");
	}
	for (; shown < n_lived && shown < MAX_THREADS; shown++)
		put_thread(profile, view, ids[shown]);
	if (shown < n_lived)
		fprintf(view->out, "and %s that lived shorter\n",
			seam_format_amount(buf, n_lived - shown, "thread"));
	free(ids);
}

void seam_wait_stats_text(const struct seam_profile *profile,
			  const struct seam_view *view)
{
	for (size_t i = 0; i < profile->events.n; i++)
		if (profile->events.items[i].is_wait &&
		    profile->events.items[i].n_samples)
			put_kinds(profile, view, &profile->events.items[i]);
	put_threads(profile, view);
}

/* ---- JSON ---- */

static void put_kinds_json(const struct seam_profile *profile,
			   struct seam_json *j,
			   const struct seam_profile_event *event)
{
	seam_json_open(j, NULL, '{');
	seam_json_string(j, "event", seam_profile_text(profile, event->name));
	for (size_t i = 0; i < SEAM_N_WAIT_STACKS; i++) {
		seam_json_open(j, kinds[i].key, '{');
		seam_json_u64(j, "waits", event->waits.n[i]);
		seam_json_u64(j, "ns", event->waits.ns[i]);
		seam_json_close(j);
	}
	seam_json_u64(j, "open", event->waits.n_open);
	seam_json_u64(j, "open_ns", event->waits.open_ns);
	seam_json_close(j);
}

void seam_wait_stats_json(const struct seam_profile *profile,
			  struct seam_json *j)
{
	seam_json_open(j, "waits", '[');
	for (size_t i = 0; i < profile->events.n; i++)
		if (profile->events.items[i].is_wait)
			put_kinds_json(profile, j, &profile->events.items[i]);
	seam_json_close(j);
	seam_json_open(j, "threads", '[');
	for (size_t i = 0; i < profile->thread_times.n; i++) {
		const struct seam_thread_time *time =
			&profile->thread_times.items[i];
		const struct seam_thread *thread = &profile->threads.items[i];

		if (!life_of(time))
			continue;
		seam_json_open(j, NULL, '{');
		seam_json_i64(j, "tid", thread->tid);
		seam_json_string(j, "thread",
				 seam_profile_text(profile, thread->name));
		seam_json_u64(j, "running_ns", time->running_ns);
		seam_json_u64(j, "blocked_ns", time->blocked_ns);
		seam_json_u64(j, "preempted_ns", time->preempted_ns);
		seam_json_u64(j, "unknown_ns", time->unknown_ns);
		seam_json_close(j);
	}
	seam_json_close(j);
}
