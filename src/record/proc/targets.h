/* SPDX-License-Identifier: MIT */
/* targets.h - the threads that a recording samples */
#ifndef SEAM_TARGETS_H
#define SEAM_TARGETS_H

#include "record/proc/procfs.h"

/* The ids in "4711,4712".  -EBADMSG when it is not such a list. */
int seam_targets_parse(struct seam_number_list *ids, const char *text);

/*
 * Put into @out the current threads of the processes @pids (with @children
 * also of their descendants) and the threads @tids, each once, ascending.
 * -ESRCH: one of @pids or @tids does not exist; the message names it.
 */
int seam_targets_list(struct seam_number_list *out,
		      const struct seam_number_list *pids,
		      const struct seam_number_list *tids, bool children,
		      struct seam_err *err);

/* Whether all of @some, ascending, are in @all, ascending. */
bool seam_targets_are_in(const struct seam_number_list *some,
			 const struct seam_number_list *all);

/* The process of thread @tid; 0: the thread has ended. */
int seam_targets_process(int tid);

#endif /* SEAM_TARGETS_H */
