/* SPDX-License-Identifier: MIT */
/*
 * sources.h - the perf events of a recording and the rings they write to
 *
 * An event is opened once for each thread to watch and each CPU: a source.
 * All sources of a CPU share two rings: one for samples, and a small one for
 * the side-band (names, mappings, births and deaths), which a flood of
 * samples therefore never costs a record.  The side-band comes from a
 * software event "dummy", the last of the events.
 *
 * What the kernel refuses is given up step by step where a recording makes
 * sense without it, and each step is noted: the kernel's own samples for a
 * user without the right to them, features newer than the kernel, ring
 * space beyond what the user may lock.
 */
#ifndef SEAM_SOURCES_H
#define SEAM_SOURCES_H

#include "record/event.h"
#include "record/machine.h"
#include "ring/consumer.h"

/* One event on one CPU for one thread. */
struct seam_source {
	int fd;
	uint64_t id;		/* what its records carry */
	uint32_t event;
	uint32_t ring;
};

/* One ring, and what came out of it so far. */
struct seam_source_ring {
	struct seam_ring ring;
	int cpu;
	bool is_sideband;
	int fd;			/* of the source that owns it */
	uint64_t n_records;
	uint64_t n_bytes;
	uint64_t n_lost;	/* by the LOST records in it */
	uint64_t n_bad_bytes;	/* not records at all */
};

/* Things that a recording can do without; bits of left_out. */
enum seam_left_out {
	SEAM_LEFT_OUT_KERNEL = 1 << 0,		/* samples of the kernel */
	SEAM_LEFT_OUT_BUILD_IDS = 1 << 1,	/* of files, in MMAP2 */
	SEAM_LEFT_OUT_LOST_COUNTS = 1 << 2,	/* PERF_FORMAT_LOST */
	SEAM_LEFT_OUT_KSYMBOLS = 1 << 3,	/* names of BPF programs */
	SEAM_LEFT_OUT_RING_SPACE = 1 << 4,	/* rings are smaller */
};

/* What each bit is called in the manifest; NULL behind the last. */
const char *seam_left_out_name(int bit_index);

/* The caller fills the first part, before seam_sources_open(). */
struct seam_sources {
	struct seam_event *events;	/* the side-band's last; borrowed */
	size_t n_events;
	struct seam_number_list cpus;	/* freed with the sources */
	struct seam_number_list tids;	/* likewise */
	bool on_exec;			/* sample from the next exec on */
	size_t ring_bytes;		/* wanted, a power of two */

	struct seam_source *items;
	size_t n, cap;
	struct seam_source_ring *rings;	/* [2 * cpu], side-band first */
	size_t n_rings;
	unsigned int left_out;		/* enum seam_left_out */
};

/*
 * The event of the side-band, with a name of perf's.  @events of a recording
 * end with it.
 */
void seam_sources_sideband(struct seam_event *event);

/*
 * Open everything and map the rings.  On an error nothing stays open.
 * -ENOENT and such: see seam_sources_refusal().
 */
int seam_sources_open(struct seam_sources *s, struct seam_err *err);

/* Start and stop.  Not needed at the start with on_exec. */
void seam_sources_enable(struct seam_sources *s);
void seam_sources_disable(struct seam_sources *s);

/*
 * How many records of source @i were lost for want of space, by the kernel's
 * own count (exact, LOST records included); 0 where it keeps none.
 */
uint64_t seam_sources_lost(const struct seam_sources *s, size_t i);

/* Valid on zeroed sources, and again after itself. */
void seam_sources_fini(struct seam_sources *s);

/* Why opening @event gave @code, and what to do about it. */
int seam_sources_refusal(int code, const struct seam_event *event,
			 struct seam_err *err);

#endif /* SEAM_SOURCES_H */
