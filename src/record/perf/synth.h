/* SPDX-License-Identifier: MIT */
/*
 * synth.h - synthesized records: tasks and mappings from before the recording
 *
 * The kernel writes records when names and mappings change.  Those that exist
 * already are read from /proc and written at the head of the file as records
 * of the same layout, with time 0.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"
#include "symbol/kernel/kernel.h"

/* Records of one process: 20,000 mappings with usual names. */
enum { SEAM_SYNTH_MAX_PROCESS_BYTES = 4 << 20 };

/* A sequence of records.  Zeroed is empty. */
struct seam_synth {
	SEAM_ARRAY(uint8_t) bytes;
	uint64_t id;		/* of the side-band; in their sample_id */
	bool data_mappings;	/* of files, besides executable ones */
	bool no_memory;		/* records are missing for want of memory */
	uint64_t n_left_out;	/* mappings beyond the maximum of a process */
};

void seam_synth_fini(struct seam_synth *synth);

/* The kernel and its modules, with build ids. */
void seam_synth_kernel(struct seam_synth *synth,
		       const struct seam_kernel_identity *kernel);

/* The names of the threads of a process and, @with_namespaces, those. */
void seam_synth_threads(struct seam_synth *synth, int pid,
			bool with_namespaces);

/*
 * A running process: its threads; its executable mappings (with .data_mappings
 * all of files) with the build ids of their files.  Opens those files
 * (target_file.h), which may block: not for the thread that drains.
 */
void seam_synth_process(struct seam_synth *synth, int pid,
			bool with_namespaces);

/* All cgroups (proc/cgroup.h), by the ids that samples carry. */
void seam_synth_cgroups(struct seam_synth *synth);

/*
 * Announce the jitdump at @path of process @pid, as the mapping of its marker
 * would: one byte at address 0, where nothing can be mapped.
 */
void seam_synth_marker(struct seam_synth *synth, int pid, const char *path,
		       uint64_t time_ns);

/* LOST_SAMPLES: in all, @lost records of event @id on @cpu. */
void seam_synth_lost_samples(struct seam_synth *synth, uint64_t id, uint32_t cpu,
			     uint64_t time_ns, uint64_t lost);

/* LOST, as the kernel would write it: @lost records before @time_ns. */
void seam_synth_lost(struct seam_synth *synth, uint64_t id, uint32_t cpu,
		     uint64_t time_ns, uint64_t lost);

/* A record of perf's user space, without sample_id: @n words. */
void seam_synth_words(struct seam_synth *synth, uint32_t type,
		      const uint64_t *words, size_t n);

/* End of the synthesized records (PERF_RECORD_FINISHED_INIT). */
void seam_synth_end(struct seam_synth *synth);
