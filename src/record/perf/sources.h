/* SPDX-License-Identifier: MIT */
/*
 * sources.h - the perf events of a recording and the rings they write to
 *
 * An event is opened for each thread to watch on each CPU: a source.  There
 * are three kinds of rings, because a flood of samples must not cost a name,
 * and an AUX area is that of one ring and of one event in it:
 *
 *	side-band   names, mappings, births and deaths; one small ring for
 *		    each CPU, on all CPUs, whatever is sampled.  From a
 *		    software event "dummy", the last of the events, which
 *		    children always inherit
 *	samples	    one ring for each CPU that is sampled; or, a thread at a
 *		    time (per_thread), one for each thread, which the kernel
 *		    allows only without inheritance: threads that come later
 *		    are added when the side-band tells of them
 *	areas	    the same for each event that writes an AUX area; in the
 *		    ring are the records that tell of the area, and which
 *		    thread it was of
 *
 * Times are CLOCK_MONOTONIC; with areas they are the kernel's own clock, the
 * only one that a decoder gets to from the CPU's counter in the area.
 *
 * What the kernel refuses is given up where possible; see fallback.h.
 */
#ifndef SEAM_SOURCES_H
#define SEAM_SOURCES_H

#include "base/array.h"
#include "base/index.h"
#include "record/fallback.h"
#include "record/proc/procfs.h"
#include "ring/aux.h"

enum {
	SEAM_SOURCES_EVERY = -1,	/* as a tid or a cpu: all of them */
	/* Threads that a per-thread recording can meet one after another. */
	SEAM_SOURCES_MOST_THREADS = 16384,
	/* Descriptors that threads leave for what is opened besides. */
	SEAM_SOURCES_SPARE_FDS = 64,
	/* Data of a ring of side-band or AUX records: 1000 of them or so. */
	SEAM_SOURCES_SIDE_BYTES = 128 * 1024,
};

enum seam_ring_use {
	SEAM_RING_OF_SIDEBAND,
	SEAM_RING_OF_SAMPLES,
	SEAM_RING_OF_AREA,
};

/* One event on one CPU for one thread. */
struct seam_source {
	int fd;			/* -1: its thread has ended */
	uint64_t id;		/* what its records carry */
	uint32_t event;
	uint32_t ring;
	int tid;		/* or SEAM_SOURCES_EVERY */
	uint64_t n_lost;	/* when fd is -1: seam_sources_lost() */
	/* Of all that runs on a CPU, by our clock: it was enabled that long. */
	uint64_t from_ns, until_ns;
};

/* One thread that has rings of its own: its sources and rings, in a row. */
struct seam_source_thread {
	int tid;
	bool has_ended;
	uint32_t first_source, n_sources;
	uint32_t first_ring, n_rings;
};

/* One ring, and what came out of it so far. */
struct seam_source_ring {
	struct seam_ring ring;
	int cpu, tid;		/* or SEAM_SOURCES_EVERY */
	enum seam_ring_use use;
	bool is_backward;	/* keeps the newest, is never drained */
	int fd;			/* of the source that owns it; -1: none */
	struct seam_ring_aux aux;	/* of no bytes: has none */
	bool is_stopped;	/* its area was full: to be enabled again */
	/* Of its data and of its area; they stay when it is unmapped. */
	size_t size_bytes, area_bytes;
	uint64_t n_records;
	uint64_t n_bytes;
	uint64_t n_lost;	/* by the LOST records in it */
	uint64_t n_bad_bytes;	/* not records at all */
};

/* The caller fills the first part, before seam_sources_open(). */
struct seam_sources {
	struct seam_event *events;	/* the side-band's last; borrowed */
	size_t n_events;
	struct seam_number_list cpus;	/* online; freed with the sources */
	struct seam_number_list sampled;/* those to sample; none: all */
	struct seam_number_list tids;	/* or the one SEAM_SOURCES_EVERY */
	bool per_thread;
	bool overwrite;			/* rings of samples run backward */
	bool on_exec;			/* sample from the next exec on */
	bool delayed;			/* only the side-band is enabled */
	bool is_sampling;		/* the rest is; the caller's to say */
	bool no_inherit;		/* no children of those watched */
	bool free_running;		/* areas, of which snapshots are taken */
	size_t ring_bytes;		/* wanted, then had; a power of two */
	size_t area_bytes;		/* the same for AUX areas */
	uint64_t watermark;		/* bytes to a wake-up; 0: a part */
	const char *filter;		/* of tracepoints; NULL: none */

	SEAM_ARRAY(struct seam_source) list;
	SEAM_ARRAY(struct seam_source_ring) rings;	/* side-band's first */
	SEAM_ARRAY(struct seam_source_thread) threads;
	struct seam_index by_tid;	/* of threads; of the ended ones too */
	SEAM_ARRAY(uint32_t) live;	/* rings that are mapped */
	unsigned int left_out;		/* enum seam_left_out */
};

/* "sideband", "samples" or "area". */
const char *seam_ring_use_name(enum seam_ring_use use);

/*
 * The event of the side-band, with a name of perf's.  @events of a recording
 * end with it.
 */
void seam_sources_sideband(struct seam_event *event);

/*
 * Open everything and map the rings.  On an error nothing stays open.
 * -ESRCH: none of the threads is there; else see seam_fallback_refusal().
 */
int seam_sources_open(struct seam_sources *s, struct seam_err *err);

/*
 * A thread of a per-thread recording that came later: open its sources and
 * start them.  They stand behind the others in the list.  -ESRCH: it has
 * ended already; -EMFILE: beyond the most threads or descriptors.
 */
int seam_sources_add_thread(struct seam_sources *s, int tid,
			    struct seam_err *err);

/*
 * A thread has ended, and its rings have been drained: give descriptors and
 * memory back.  The counts stay.
 */
void seam_sources_end_thread(struct seam_sources *s, int tid);

/*
 * Start and stop.  Not needed at the start with on_exec.  While delayed is
 * set only the side-band starts.
 */
void seam_sources_enable(struct seam_sources *s);
void seam_sources_disable(struct seam_sources *s);

/* Thread @tid, of which events are open; or NULL.  Valid until the next. */
struct seam_source_thread *seam_sources_thread(const struct seam_sources *s,
					       int tid);

/* Stop what thread @tid alone has; its areas' heads are true then. */
void seam_sources_stop_thread(struct seam_sources *s, int tid);

/* The kernel stops what found its area full: go on with ring @ring. */
void seam_sources_restart(struct seam_sources *s, uint32_t ring);

/*
 * Stop all that writes areas while they are copied, and let it go on if it
 * was sampling.
 */
void seam_sources_hold_areas(struct seam_sources *s, bool hold);

/*
 * How many records of source @i were lost for want of space, by the kernel's
 * own count (exact, LOST records included); 0 where it keeps none.
 */
uint64_t seam_sources_lost(const struct seam_sources *s, size_t i);

/*
 * How long source @i, of all that runs on a CPU, was enabled by the kernel's
 * own count: its time ends for good when the CPU goes offline.  False where
 * the kernel does not say.
 */
bool seam_sources_enabled_ns(const struct seam_sources *s, size_t i,
			     uint64_t *ns);

/* Valid on zeroed sources, and again after itself. */
void seam_sources_fini(struct seam_sources *s);

#endif /* SEAM_SOURCES_H */
