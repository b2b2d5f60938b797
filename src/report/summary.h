/* SPDX-License-Identifier: MIT */
/* summary.h - head and tail of every report: samples, time, losses, notes */
#pragma once

#include "base/json.h"
#include "report/report.h"

/* The first lines: command, file, samples, time, loss. */
void seam_summary_head(const struct seam_report *report,
		       const struct seam_view *view);

/* A line for one event: samples, their weight, loss. */
void seam_summary_event(const struct seam_report *report,
			const struct seam_view *view, uint32_t event,
			uint64_t samples, uint64_t weight);

/* A line in place of rows where none passes --filter. */
void seam_summary_unmatched(const struct seam_report *report,
			    const struct seam_view *view);

/* The last lines: losses by cause, notes.  Nothing when there are none. */
void seam_summary_tail(const struct seam_report *report,
		       const struct seam_view *view);

/*
 * Writes one event: 1 when it had samples and was written, 0 when it had none,
 * or a negative errno.
 */
typedef int seam_summary_put_fn(const struct seam_report *report,
				const struct seam_view *view, uint32_t event);

/*
 * A whole text: the head, each event by @put, the tail.  0, or the first
 * negative errno of @put.
 */
int seam_summary_frame(const struct seam_report *report,
		       const struct seam_view *view, seam_summary_put_fn *put);

/*
 * "1,234 samples (cpu-clock) over 5.01 s; 3 records lost (0.24 %)", for a
 * subtitle.  Returns @buf.
 */
const char *seam_summary_line(const struct seam_selected *selected,
			      uint64_t samples, char *buf, size_t cap);

/*
 * Members of an open object: the comm, thread, process or CPU @id; of a thread
 * also its process, unless @without_process.
 */
void seam_summary_task_json(const struct seam_profile *profile,
			    struct seam_json *j, enum seam_group group,
			    uint32_t id, bool without_process);

/* Members of an open object: command, file, times, lost, notes. */
void seam_summary_json(const struct seam_report *report, struct seam_json *j,
		       uint64_t samples);

/* Members of an open object: event, unit, samples, weight, lost. */
void seam_summary_event_json(const struct seam_report *report,
			     struct seam_json *j, uint32_t event,
			     uint64_t samples, uint64_t weight);
