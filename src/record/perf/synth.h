/* SPDX-License-Identifier: MIT */
/*
 * synth.h - records for what was there before the recording
 *
 * The kernel tells of names and mappings when they change.  What stands
 * already is read from /proc and put at the head of the file in records of
 * the same form, with time 0.
 */
#ifndef SEAM_SYNTH_H
#define SEAM_SYNTH_H

#include "base/array.h"
#include "base/err.h"
#include "record/proc/running_kernel.h"

enum {
	SEAM_SYNTH_MOST_CGROUPS = 65536,
	SEAM_SYNTH_NAME = 4096,	/* a path, its NUL and padding included */
	/* Of one process: 20,000 mappings with usual names. */
	SEAM_SYNTH_MAX_PROCESS_BYTES = 4 << 20,
};

/* Records one behind the other.  Zeroed is empty. */
struct seam_synth {
	SEAM_ARRAY(uint8_t) bytes;
	uint64_t id;		/* of the event they are said to come from */
	bool no_memory;		/* something is missing for want of it */
	uint64_t n_left_out;	/* mappings beyond the most of a process */
};

void seam_synth_fini(struct seam_synth *synth);

/* The kernel and its modules, with build ids. */
void seam_synth_kernel(struct seam_synth *synth,
		       const struct seam_running_kernel *kernel);

/* The name of a thread. */
void seam_synth_comm(struct seam_synth *synth, int pid, int tid,
		     const char *name);

/*
 * A process as it is now: its threads' names, its executable mappings, with
 * the build ids of their files.  Opens those, as target_file.h says: may
 * block, so not for the thread that drains.
 */
void seam_synth_process(struct seam_synth *synth, int pid);

/* The namespaces that each thread of process @pid is in now. */
void seam_synth_namespaces(struct seam_synth *synth, int pid);

/*
 * The cgroups that there are, by the numbers that samples have: of the
 * hierarchy of perf_event, which is the second version's where no other has
 * it.  As many as SEAM_SYNTH_MOST_CGROUPS.
 */
void seam_synth_cgroups(struct seam_synth *synth);

/*
 * Process @pid has a jitdump at @path, as the mapping of its marker would say;
 * of no bytes but one, at 0, where nothing can be.
 */
void seam_synth_marker(struct seam_synth *synth, int pid, const char *path,
		       uint64_t time_ns);

/* @lost records of event @id, which were never written, on @cpu. */
void seam_synth_lost(struct seam_synth *synth, uint64_t id, uint32_t cpu,
		     uint64_t time_ns, uint64_t lost);

/* A record of a tool's own @type, which has no trailer: @n words. */
void seam_synth_words(struct seam_synth *synth, uint32_t type,
		      const uint64_t *words, size_t n);

/* End of the synthesized records (PERF_RECORD_FINISHED_INIT). */
void seam_synth_end(struct seam_synth *synth);

#endif /* SEAM_SYNTH_H */
