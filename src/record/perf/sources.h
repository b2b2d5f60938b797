/* SPDX-License-Identifier: MIT */
/*
 * sources.h - the perf events of a recording and the rings they write to
 *
 * A source is one event, opened for one thread on one CPU, or for all of
 * either; an event of a program has none (SEAM_EVENT_OF_PROGRAM).  There are
 * five uses of rings, because a flood of samples must not cost a name, and an
 * AUX buffer belongs to one ring and to one event in it:
 *
 *	side-band   names, mappings, forks and exits; a small ring for each CPU,
 *		    on all CPUs, whatever is sampled.  From a software event
 *		    "dummy", which children always inherit
 *	samples	    a ring for each CPU that is sampled; or, with per_thread,
 *		    one for each thread, which the kernel allows only without
 *		    inheritance: later threads are added when their FORK
 *		    records are read
 *	switches    with --off-cpu, a ring for each CPU, on all CPUs, which
 *		    children always inherit: the times of waits must not be
 *		    lost for want of space for stacks; and the wakings of all
 *		    threads, by an event of the whole CPU.  They are drained
 *		    in every mode
 *	stacks	    likewise, for the stacks of waits: a program that waits often
 *		    must not cost samples their space
 *	AUX	    the same for each event that writes an AUX buffer; the ring
 *		    has the records that describe the buffer's contents, and
 *		    the switches between threads
 *
 * Times are CLOCK_MONOTONIC.  With AUX buffers they are the kernel's own
 * clock, the only one that a decoder can compute from the CPU's counter in the
 * trace.
 *
 * Features that the kernel refuses are left out where possible.
 */
#pragma once

#include "base/array.h"
#include "base/index.h"
#include "record/events/event.h"
#include "record/proc/procfs.h"
#include "ring/aux.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_SOURCES_EVERY = -1,	/* as a tid or a cpu: all of them */
	/* Threads of one per-thread recording, ended ones included. */
	SEAM_SOURCES_MAX_THREADS = 16384,
	/* Descriptors that threads may not take: files need some. */
	SEAM_SOURCES_SPARE_FDS = 64,
	/* Data of a ring of side-band or AUX records: about 1000 of them. */
	SEAM_SOURCES_SMALL_RING_BYTES = 128 * 1024,
	/*
	 * Of a ring of SWITCH records, as far as the user may lock so much:
	 * 50,000 of them.
	 */
	SEAM_SOURCES_SWITCH_RING_BYTES = 4 * 1024 * 1024,
};

enum seam_ring_use {
	SEAM_RING_OF_SIDEBAND,
	SEAM_RING_OF_SAMPLES,
	SEAM_RING_OF_AUX,
	SEAM_RING_OF_SWITCHES,
	SEAM_RING_OF_STACKS,
};

/* One event on one CPU for one thread. */
struct seam_source {
	int fd;			/* -1: its thread has ended */
	uint64_t id;		/* in its records */
	uint32_t event;		/* index in the events */
	uint32_t ring;		/* index in the rings */
	int tid;		/* or SEAM_SOURCES_EVERY */
	uint64_t n_lost;	/* final, once fd is -1 */
	uint64_t enabled_at_ns, disabled_at_ns;	/* CLOCK_MONOTONIC; 0: never */
};

/* A thread with rings of its own: the indexes of its sources and rings. */
struct seam_source_thread {
	int tid;
	bool has_ended;
	uint32_t first_source, n_sources;
	uint32_t first_ring, n_rings;
};

/* A ring, and counts of what came out of it. */
struct seam_source_ring {
	struct seam_ring ring;
	int cpu, tid;		/* or SEAM_SOURCES_EVERY */
	enum seam_ring_use use;
	bool is_backward;	/* overwrites the oldest; never drained */
	int fd;			/* of the source that owns it; -1: none */
	struct seam_ring_aux aux;	/* of size 0: none */
	bool is_stopped;	/* its AUX buffer was full: enable it again */
	/* Of its data and of its AUX buffer; kept when it is unmapped. */
	size_t size_bytes, aux_bytes;
	uint64_t tasks_read;	/* of the side-band: up to this position */
	struct seam_stack_budget {	/* switch_stacks.h */
		int64_t left_ns;
		uint64_t head;		/* of a ring that overwrites */
		bool is_spent;		/* its stacks at switches are off */
	} budget;
	uint64_t n_records;
	uint64_t n_bytes;
	uint64_t n_lost;	/* by the LOST records in it */
};

/* The caller fills the first part, before seam_sources_open(). */
struct seam_sources {
	struct seam_event *events;	/* borrowed */
	size_t n_events;
	size_t sideband;	/* index of the side-band's event */
	struct seam_number_list cpus;	/* online; freed with the sources */
	struct seam_number_list sampled;/* CPUs to sample; none: all */
	struct seam_number_list tids;	/* or the one SEAM_SOURCES_EVERY */
	bool per_thread;
	bool overwrite;		/* rings of samples and stacks run backward */
	bool on_exec;		/* sample from the next exec on */
	bool delayed;		/* only the side-band is enabled */
	bool is_sampling;	/* samples are enabled; set by the caller */
	bool no_inherit;	/* children are not recorded */
	bool may_be_sparse;	/* later sources replace some; see sparse.h */
	bool aux_snapshots;	/* AUX buffers overwrite; copied on request */
	size_t ring_bytes;	/* requested, then mapped; a power of two */
	size_t aux_bytes;	/* the same for AUX buffers */
	size_t later_ring_bytes;	/* of the next thread; 0: as all */
	uint64_t aux_snapshot_bytes;	/* of one buffer, at most; 0: all */
	uint64_t watermark;	/* bytes to a wakeup; 0: a part of the ring */
	const char *filter;	/* of tracepoints; NULL: none */
	/* of all threads those of this cgroup are sampled (proc/cgroup.h) */
	const char *cgroup;	/* NULL: of any */
	int cgroup_fd;		/* while they are opened */

	SEAM_ARRAY(struct seam_source) list;
	SEAM_ARRAY(struct seam_source_ring) rings;	/* side-band's first */
	SEAM_ARRAY(struct seam_source_thread) threads;
	struct seam_index by_tid;	/* of threads, ended ones included */
	SEAM_ARRAY(uint32_t) live;	/* indexes of rings that are mapped */
	unsigned int left_out;		/* enum seam_left_out */
};

/*
 * The attributes that all events have in common: the fields of all samples and
 * of the sample_id of all other records.
 */
extern const struct seam_perf_attr seam_sources_common;

/*
 * Read a side-band record of this recording; @header and all after it are in
 * one piece.  False when it is damaged.
 */
bool seam_sources_read_sideband(const void *header,
				struct seam_perf_sideband *out);

/* The side-band's event, under perf's name for it. */
void seam_sources_sideband(struct seam_event *event);

/* Whether all threads are recorded, not those of a list. */
bool seam_sources_is_system_wide(const struct seam_sources *s);

/* Whether an event writes AUX buffers. */
bool seam_sources_has_aux(const struct seam_sources *s);

/* The id that records of the side-band carry; for synthesized ones. */
uint64_t seam_sources_sideband_id(const struct seam_sources *s);

/*
 * Open everything and map the rings.  On an error nothing stays open, and the
 * message has the remedy.  -ESRCH: none of the threads exists.
 */
int seam_sources_open(struct seam_sources *s, struct seam_err *err);

/*
 * Open and enable the sources of a thread that a per-thread recording did not
 * have at its start; they are appended to the list.  -ESRCH: it has ended
 * already; -EMFILE: no room for more threads or descriptors.
 */
int seam_sources_add_thread(struct seam_sources *s, int tid,
			    struct seam_err *err);

/*
 * A thread has ended, and its rings have been drained: release descriptors
 * and memory.  The counts stay.
 */
void seam_sources_end_thread(struct seam_sources *s, int tid);

/* Close source @i; its counts stay, and so does a ring of another source. */
void seam_sources_end(struct seam_sources *s, size_t i);

/*
 * -EMFILE: the last source has a descriptor that files of the bundle or
 * programs that connect need.
 */
int seam_sources_check_fds(const struct seam_sources *s, struct seam_err *err);

/*
 * Start and stop.  Not needed at the start with on_exec.  While delayed is
 * set only the side-band starts.
 */
void seam_sources_enable(struct seam_sources *s);
void seam_sources_disable(struct seam_sources *s);

/*
 * While it samples: samples of the events with a frequency come @hz times a
 * second from now on; 0: none do, until the next call.  Children that were
 * forked before keep the frequency of their fork.
 */
void seam_sources_set_frequency(const struct seam_sources *s, uint64_t hz);

/*
 * Thread @tid, which has sources; or NULL.  Valid until a thread is added.
 */
struct seam_source_thread *seam_sources_thread(const struct seam_sources *s,
					       int tid);

/* Enable the sources of ring @ring, which the full AUX buffer stopped. */
void seam_sources_restart(struct seam_sources *s, uint32_t ring);

/*
 * Stop everything that writes AUX buffers, for a copy of these; with @hold
 * false go on, if it was sampling.
 */
void seam_sources_hold_aux(struct seam_sources *s, bool hold);

/*
 * How many records of source @i were lost for want of space, by the kernel's
 * own count (exact, LOST records included); 0 where it keeps none.
 */
uint64_t seam_sources_lost(const struct seam_sources *s, size_t i);

/*
 * How long source @i, which records all threads of a CPU, was enabled, by the
 * kernel's count.  That time ends for good when the CPU goes offline.  False:
 * not known.
 */
bool seam_sources_enabled_ns(const struct seam_sources *s, size_t i,
			     uint64_t *ns);

/* Valid on zeroed sources, and again after itself. */
void seam_sources_fini(struct seam_sources *s);

/* Features that a recording can do without; bits of left_out. */
enum seam_left_out {
	SEAM_LEFT_OUT_KERNEL = 1 << 0,		/* samples of the kernel */
	SEAM_LEFT_OUT_BUILD_IDS = 1 << 1,	/* of files, in MMAP2 */
	SEAM_LEFT_OUT_LOST_COUNTS = 1 << 2,	/* PERF_FORMAT_LOST */
	SEAM_LEFT_OUT_KSYMBOLS = 1 << 3,	/* names of BPF programs */
	SEAM_LEFT_OUT_RING_SPACE = 1 << 4,	/* rings are smaller */
	SEAM_LEFT_OUT_STACK_COPIES = 1 << 5,	/* of user stacks */
	SEAM_LEFT_OUT_SWITCH_STACKS = 1 << 6,	/* of --off-cpu */
	SEAM_LEFT_OUT_WAKERS = 1 << 7,
};

/* The name of each bit in the manifest; NULL after the last. */
const char *seam_left_out_name(int bit_index);
