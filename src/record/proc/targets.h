/* SPDX-License-Identifier: MIT */
/* targets.h - which threads a recording watches */
#ifndef SEAM_TARGETS_H
#define SEAM_TARGETS_H

#include "record/proc/procfs.h"

/* The ids in "4711,4712".  -EBADMSG when it is not such a list. */
int seam_targets_parse(struct seam_number_list *ids, const char *text);

/*
 * All threads that the processes @pids, and with @children those that they have
 * started, have now, and the threads @tids, each once, in @out.  -ESRCH names the first that is not there.
 */
int seam_targets_list(struct seam_number_list *out,
		      const struct seam_number_list *pids,
		      const struct seam_number_list *tids, bool children,
		      struct seam_err *err);

/*
 * Add to processes @pids those that they have started, and those of these,
 * but not ourselves.  0 or -ENOMEM.
 */
int seam_targets_descend(struct seam_number_list *pids);

/* 0 or -ENOMEM. */
int seam_targets_add(struct seam_number_list *list, int id);

/* Whether all of @some, ascending, are in @all, ascending. */
bool seam_targets_are_in(const struct seam_number_list *some,
			 const struct seam_number_list *all);

/* The process of thread @tid; 0 when it is gone. */
int seam_targets_process(int tid);

#endif /* SEAM_TARGETS_H */
