/* SPDX-License-Identifier: MIT */
/*
 * summary.c - head and tail of every report; the contract is in summary.h
 *
 * Loss is reported twice: as a figure in the head, and by cause at the end.
 */
#include "report/summary.h"

#include <inttypes.h>

#include "base/text.h"

/* Of all that was produced: the samples and the lost records. */
static double percent_lost(const struct seam_profile *profile)
{
	uint64_t lost = seam_profile_n_lost(profile);
	double produced = (double)lost +
			  (double)seam_profile_n_samples(profile);

	return produced > 0 ? 100 * (double)lost / produced : 0;
}

static uint64_t duration_ns(const struct seam_profile *profile)
{
	return profile->end_ns > profile->start_ns ?
	       profile->end_ns - profile->start_ns : 0;
}

/* "3 records lost (0.24%)"; "" where nothing was. */
static const char *loss_figure(const struct seam_profile *profile, char buf[64])
{
	uint64_t lost = seam_profile_n_lost(profile);
	char n[SEAM_NUMBER];

	buf[0] = '\0';
	if (lost)
		snprintf(buf, 64, "%s lost (%.2f%%)",
			 seam_format_amount(n, lost, "record"),
			 percent_lost(profile));
	else if (profile->losses.n)
		snprintf(buf, 64, "some data lost");
	return buf;
}

/* "12 samples", "3 calls", "5 waits", or several: they are no sum. */
static void put_amounts(const struct seam_view *view,
			const struct seam_profile *profile)
{
	uint64_t n_samples = 0, n_calls = 0, n_waits = 0;
	char buf[SEAM_NUMBER];

	for (size_t i = 0; i < profile->events.n; i++) {
		const struct seam_profile_event *e = &profile->events.items[i];

		*(e->is_measured ? &n_calls : e->is_wait ? &n_waits :
		  &n_samples) += e->n_samples;
	}
	if (n_samples || !n_calls)
		fputs(seam_format_amount(buf, n_samples,
					 seam_profile_noun(profile)),
		      view->out);
	if (n_calls)
		fprintf(view->out, "%s%s", n_samples ? " and " : "",
			seam_format_amount(buf, n_calls, "call"));
	if (n_waits)
		fprintf(view->out, ", %s",
			seam_format_amount(buf, n_waits, "wait"));
}

void seam_summary_head(const struct seam_report *report,
		       const struct seam_view *view)
{
	const struct seam_profile *profile = report->profile;
	const char *command = seam_profile_text(profile, profile->command);
	char buf[SEAM_NUMBER], loss[64];

	seam_view_style(view, SEAM_STYLE_BOLD);
	seam_view_cell(view, *command ? command : report->path,
		       view->width);
	seam_view_style(view, SEAM_STYLE_PLAIN);
	if (report->n_more)
		fprintf(view->out, " and %zu more", report->n_more);
	fputc('\n', view->out);
	if (*command) {
		seam_text_put(view->out, report->path, SEAM_TEXT_TERMINAL);
		fputs(": ", view->out);
	}
	put_amounts(view, profile);
	if (!profile->sysprof)	/* which has no times */
		fprintf(view->out, " over %s", seam_format_weight(buf,
				duration_ns(profile), SEAM_UNIT_NS));
	fputs(", ", view->out);
	if (*loss_figure(profile, loss))
		seam_view_print(view, SEAM_STYLE_WARN, "%s", loss);
	else
		fputs("nothing lost", view->out);
	fputc('\n', view->out);
}

void seam_summary_event(const struct seam_report *report,
			const struct seam_view *view, uint32_t event,
			uint64_t samples, uint64_t weight)
{
	const struct seam_profile_event *e =
		&report->profile->events.items[event];
	char buf[SEAM_NUMBER];

	fputc('\n', view->out);
	seam_view_text(view, SEAM_STYLE_BOLD,
		       seam_profile_text(report->profile, e->name));
	fprintf(view->out, ": %s", seam_format_count(buf, samples));
	if (samples != e->n_samples)
		fprintf(view->out, " of %s",
			seam_format_count(buf, e->n_samples));
	fprintf(view->out, " %s%s", seam_event_noun(e),
		e->n_samples == 1 ? "" : "s");
	/* calls of functions of which only entries are recorded */
	if (weight || !e->is_measured)
		fprintf(view->out, ", %s%s",
			seam_format_weight(buf, weight,
					   (enum seam_unit)e->unit),
			e->unit == SEAM_UNIT_NS ? "" :
			e->is_measured ? weight == 1 ? " tick" : " ticks" :
			weight == 1 ? " event" : " events");
	if (e->n_lost)
		seam_view_print(view, SEAM_STYLE_WARN, ", %s lost (%.2f%%)",
				seam_format_count(buf, e->n_lost),
				100 * (double)e->n_lost /
				((double)e->n_lost + (double)e->n_samples));
	fputc('\n', view->out);
}

void seam_summary_unmatched(const struct seam_report *report,
			    const struct seam_view *view)
{
	fputs("Nothing matches '", view->out);
	seam_text_put(view->out, report->filter ? report->filter : "",
		      SEAM_TEXT_TERMINAL);
	fputs("'\n", view->out);
}

static void put_loss(const struct seam_profile *profile,
		     const struct seam_view *view,
		     const struct seam_loss *loss)
{
	const char *source = seam_profile_text(profile, loss->source);
	char buf[SEAM_NUMBER];

	seam_view_print(view, SEAM_STYLE_WARN, "lost");
	fputs(": ", view->out);
	if (loss->records)
		fprintf(view->out, "%s, ",
			seam_format_amount(buf, loss->records, "record"));
	if (loss->bytes)
		fprintf(view->out, "%s, ",
			seam_format_amount(buf, loss->bytes, "byte"));
	seam_text_put(view->out, loss->cause, SEAM_TEXT_TERMINAL);
	if (*source) {
		fputs(" (", view->out);
		seam_text_put(view->out, source, SEAM_TEXT_TERMINAL);
		fputc(')', view->out);
	}
	fputc('\n', view->out);
}

static void put_note(const struct seam_profile *profile,
		     const struct seam_view *view, uint32_t note)
{
	fputs("note: ", view->out);
	seam_text_put(view->out, seam_profile_text(profile, note),
		      SEAM_TEXT_TERMINAL);
	fputc('\n', view->out);
}

void seam_summary_tail(const struct seam_report *report,
		       const struct seam_view *view)
{
	const struct seam_profile *profile = report->profile;
	size_t n_details = report->details ? profile->details.n : 0;

	if (profile->losses.n + profile->notes.n + n_details)
		fputc('\n', view->out);
	for (size_t i = 0; i < profile->losses.n; i++)
		put_loss(profile, view, &profile->losses.items[i]);
	for (size_t i = 0; i < profile->notes.n; i++)
		put_note(profile, view, profile->notes.items[i]);
	for (size_t i = 0; i < n_details; i++)
		put_note(profile, view, profile->details.items[i]);
}

int seam_summary_frame(const struct seam_report *report,
		       const struct seam_view *view, seam_summary_put_fn *put)
{
	bool any = false;

	seam_summary_head(report, view);
	for (uint32_t e = 0; e < report->profile->events.n; e++) {
		int rc = put(report, view, e);

		if (rc < 0)
			return rc;
		any |= rc > 0;
	}
	if (!any)
		fprintf(view->out, seam_profile_n_samples(report->profile) ?
			"\nNo %ss are selected.\n" :
			"\nThe recording has no %ss.\n",
			seam_profile_noun(report->profile));
	seam_summary_tail(report, view);
	return 0;
}

const char *seam_summary_line(const struct seam_selected *selected,
			      uint64_t samples, char *buf, size_t cap)
{
	const struct seam_profile *profile = selected->profile;
	char n[SEAM_NUMBER], time[SEAM_NUMBER], over[64] = "", loss[64];

	if (!profile->sysprof)	/* which has no times */
		snprintf(over, sizeof(over), " over %s",
			 seam_format_weight(time,
				seam_selected_duration_ns(selected),
				SEAM_UNIT_NS));
	loss_figure(profile, loss);
	snprintf(buf, cap, "%s%s%s%s",
		 seam_format_amount(n, samples, seam_selected_noun(selected)),
		 over, *loss ? "; " : "", loss);
	return buf;
}

void seam_summary_task_json(const struct seam_profile *profile,
			    struct seam_json *j, enum seam_group group,
			    uint32_t id, bool without_process)
{
	static const char *const names[] = {
		[SEAM_GROUP_COMM] = "comm", [SEAM_GROUP_THREAD] = "thread",
		[SEAM_GROUP_PROCESS] = "process",
		[SEAM_GROUP_VMSTATE] = "vmstate", [SEAM_GROUP_WAIT] = "wait",
		[SEAM_GROUP_WAKER] = "waker", [SEAM_GROUP_CGROUP] = "cgroup",
		[SEAM_GROUP_HOST] = "host", [SEAM_GROUP_SERVICE] = "service",
	};
	static const char *const numbers[] = {
		[SEAM_GROUP_THREAD] = "tid", [SEAM_GROUP_PROCESS] = "pid",
		[SEAM_GROUP_CPU] = "cpu",
		[SEAM_GROUP_RUNNING] = "parallelism",
		[SEAM_GROUP_SERVICE] = NULL,
	};

	if (names[group])
		seam_json_string(j, names[group],
				 seam_group_text(profile, group, id));
	if (numbers[group])
		seam_json_i64(j, numbers[group],
			      seam_group_number(profile, group, id));
	if (group == SEAM_GROUP_THREAD && !without_process)
		seam_summary_task_json(profile, j, SEAM_GROUP_PROCESS,
				       profile->threads.items[id].process,
				       true);
}

void seam_summary_json(const struct seam_report *report, struct seam_json *j,
		       uint64_t samples)
{
	const struct seam_profile *profile = report->profile;
	uint64_t lost_bytes = 0;

	seam_json_string(j, "file", report->path);
	if (report->n_more) {
		seam_json_open(j, "more_files", '[');
		for (size_t i = 0; i < report->n_more; i++)
			seam_json_string(j, NULL, report->more[i]);
		seam_json_close(j);
	}
	seam_json_string(j, "command",
			 seam_profile_text(profile, profile->command));
	seam_json_u64(j, "samples", samples);
	seam_json_u64(j, "start_ns", profile->start_ns);
	seam_json_u64(j, "duration_ns", duration_ns(profile));
	for (size_t i = 0; i < profile->losses.n; i++)
		lost_bytes += profile->losses.items[i].bytes;
	seam_json_open(j, "lost", '{');
	seam_json_u64(j, "records", seam_profile_n_lost(profile));
	seam_json_double(j, "percent", percent_lost(profile));
	seam_json_u64(j, "bytes", lost_bytes);
	seam_json_open(j, "causes", '[');
	for (size_t i = 0; i < profile->losses.n; i++) {
		const struct seam_loss *loss = &profile->losses.items[i];

		seam_json_open(j, NULL, '{');
		seam_json_string(j, "cause", loss->cause);
		seam_json_string(j, "source",
				 seam_profile_text(profile, loss->source));
		seam_json_u64(j, "records", loss->records);
		seam_json_u64(j, "bytes", loss->bytes);
		seam_json_close(j);
	}
	seam_json_close(j);
	seam_json_close(j);
	seam_json_open(j, "notes", '[');
	for (size_t i = 0; i < profile->notes.n; i++)
		seam_json_string(j, NULL, seam_profile_text(profile,
						profile->notes.items[i]));
	for (size_t i = 0; i < profile->details.n; i++)
		seam_json_string(j, NULL, seam_profile_text(profile,
						profile->details.items[i]));
	seam_json_close(j);
}

void seam_summary_event_json(const struct seam_report *report,
			     struct seam_json *j, uint32_t event,
			     uint64_t samples, uint64_t weight)
{
	const struct seam_profile_event *e =
		&report->profile->events.items[event];

	seam_json_string(j, "event", seam_profile_text(report->profile,
						       e->name));
	seam_json_string(j, "unit", e->unit == SEAM_UNIT_NS ? "ns" : "count");
	if (e->is_measured || e->is_wait)
		seam_json_string(j, "counts", e->is_wait ? "waits" : "calls");
	seam_json_u64(j, "samples", samples);
	seam_json_u64(j, "weight", weight);
	seam_json_u64(j, "lost", e->n_lost);
}
