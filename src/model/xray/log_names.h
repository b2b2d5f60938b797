/* SPDX-License-Identifier: MIT */
/*
 * log_names.h - the maps and event names beside the logs of a trace
 *
 * Beside PID.xray a recording has PID.yaml, the instrumentation map of that
 * process, and PID.events, the names of its typed events.  Logs alone can have
 * them too.
 *
 * Processes of several programs may be in one trace.  Maps that agree are those
 * of one program: a process and its forks, which saw different functions.  The
 * programs get ranges of numbers, one after another, and all of them one map;
 * struct seam_trace_ids converts the numbers of a log.  Logs without a map come
 * last, as one program without names.
 */
#ifndef SEAM_LOG_NAMES_H
#define SEAM_LOG_NAMES_H

#include "model/xray/trace.h"
#include "symbol/xray/xray_map.h"

/* What could not be read, and which logs have no map; both for a message. */
struct seam_log_notes {
	void (*note)(void *context, const char *text);
	void *context;
};

/*
 * Find the names of the functions and events of @trace, which has all of its
 * logs and is not read yet: @names from the map @path for all logs; where it is
 * NULL, from the map beside each log.  A file beside a log that cannot be read
 * is noted, and the log has no names.
 *
 * 0, -ENOMEM, or the reason why @path cannot be read.  Not to be called while
 * other threads run.
 */
int seam_log_names_open(struct seam_xray_map *names, struct seam_trace *trace,
			const char *path, const struct seam_log_notes *notes,
			struct seam_err *err);

#endif /* SEAM_LOG_NAMES_H */
