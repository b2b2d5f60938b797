/* SPDX-License-Identifier: MIT */
/*
 * profiler.h - start and stop the profiler, for both APIs
 *
 * It calls nothing of Lua: a VM is an address to compare.  lmisclib.h has the
 * contracts.  Threads: any; not in handlers.
 */
#ifndef SEAM_SYSPROF_PROFILER_H
#define SEAM_SYSPROF_PROFILER_H

#include <seam/lmisclib.h>

#include "traced/sysprof/native_symbols.h"

/* Functions that write the stream; NULL writer: not set. */
struct seam_sysprof_output {
	/*
	 * Called when nothing else can make a start fail but the writer and
	 * the tick; 0, or a negative errno.  NULL: there is nothing to open.
	 */
	int (*open)(void *ctx);
	luam_Sysprof_writer writer;
	luam_Sysprof_on_stop on_stop;
	/* Free @ctx in a forked child, without writing.  NULL: it stays. */
	void (*on_child)(void *ctx);
	/* Add names of functions for the stream's symbols; or NULL. */
	void (*add_names)(void *vm, struct seam_native_names *names);
	void *names_vm;		/* its argument */
	bool ends_at_exit;	/* stop when the program calls exit() */
	size_t enough;		/* bytes; see stream_out.h */
};

/*
 * Start.  @opt and what it refers to is the profiler's until on_stop, which
 * is called for each failure too.  PROFILE_SUCCESS, or another; with
 * PROFILE_ERRIO errno is set.
 */
int seam_sysprof_start(const void *vm, const struct luam_sysprof_options *opt,
		       const struct seam_sysprof_output *output,
		       luam_Sysprof_backtracer backtracer);

/* Stop.  @vm: of start; NULL: any. */
int seam_sysprof_stop(const void *vm);

/* False while it runs, is halted, or another thread starts or stops it. */
bool seam_sysprof_is_idle(void);

/* The counters of the last run; as luaM_sysprof_report(). */
int seam_sysprof_count(struct luam_sysprof_counters *counters);

#endif /* SEAM_SYSPROF_PROFILER_H */
