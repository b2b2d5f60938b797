/* SPDX-License-Identifier: MIT */
/*
 * loads.h - notice what the program loads while it is profiled
 *
 * The handler cannot read the files of a library, so a thread does: when a
 * stack ended in code of no known file, it prepares unwinding for new files,
 * finds VMs in them, and makes events of their symbols.  It has all signals
 * blocked, and sleeps until then.  Where it cannot be
 * started, new files are noticed at the end only.
 */
#ifndef SEAM_SYSPROF_LOADS_H
#define SEAM_SYSPROF_LOADS_H

#include <seam/lmisclib.h>

#include "traced/sysprof/native_symbols.h"
#include "traced/sysprof/profiler_run.h"

/*
 * Begin to push to @run->late; @symbols, where the stream has those that were
 * loaded until now, is the thread's until the end.  NULL: no symbols.
 */
void seam_sysprof_loads_begin(struct seam_sysprof_run *run,
			      struct seam_native_symbols *symbols);

/* End.  The second is for a forked child, which has no such thread. */
void seam_sysprof_loads_end(void);
void seam_sysprof_loads_forget(void);

/*
 * Push events for files loaded since the last time.  The caller is the thread
 * above, or it has ended.
 */
void seam_sysprof_loads_push(struct seam_sysprof_run *run,
			     struct seam_native_symbols *symbols);

#endif /* SEAM_SYSPROF_LOADS_H */
