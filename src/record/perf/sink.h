/* SPDX-License-Identifier: MIT */
/*
 * sink.h - a recording whose records go to a function, not to a bundle
 *
 * For commands that show what is recorded while it is recorded (seam top), or
 * that only count (seam stat).  Events, rings, rounds, the unwinding of stacks
 * and the counts of losses are those of any recording; there is no folder, no
 * file is copied, and programs are offered no rings, so there are no streams of
 * JIT code and no samples of samplers.
 *
 * Threads: all functions are called in the recorder's thread.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

#include <sys/types.h>

struct seam_sources;

struct seam_sink {
	/* Readable: begin a round; after_round() reads it.  -1: none. */
	int fd;

	/*
	 * The events are open.  @command has been forked and waits to run, 0:
	 * there is none.  @sources is borrowed to the end of the recording.
	 * 0, or -errno, which ends it.
	 */
	int (*begin)(struct seam_sink *sink, const struct seam_sources *sources,
		     pid_t command, struct seam_err *err);

	/*
	 * Whole records, valid until it returns: of one round those of each
	 * CPU in their order, those of all CPUs only where stacks are unwound.
	 * Then samples have the fields of seam_event_file_attr().
	 */
	void (*take)(struct seam_sink *sink, struct seam_bytes records);

	/*
	 * After a round.  Later ones have no record older than @until_ns,
	 * except that where stacks are unwound a sample may come a few rounds
	 * late.  @at_end: there are no more records, except LOST_SAMPLES of
	 * losses that no record has reported.  False: end the recording.
	 */
	bool (*after_round)(struct seam_sink *sink, uint64_t until_ns,
			    bool at_end);

	uint64_t due_ns;	/* of the next round at the latest */
};
