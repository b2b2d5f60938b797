/* SPDX-License-Identifier: MIT */
/*
 * drain.h - from the rings to the file, in rounds
 *
 * A round takes all whole records of all rings and appends them in one
 * batch, straight from the mappings; then it advances the tails.  The
 * batch ends with FINISHED_ROUND: all later records are younger than those of
 * the round before, so readers may sort and release up to there.
 *
 * Rings that run backward are not drained; see recording.h.  FINISHED_ROUND is
 * not written then, because older records follow.
 *
 * Records are only walked to count them, and to pass those of the side-band to
 * the parts of the session that follow tasks, mappings and files.  In between
 * the records of programs are taken (services.h), which are one more piece of
 * the batch.
 *
 * With live_stacks, all records of a round are taken in the order of time over
 * all rings, and what samples and the records among them become is one more
 * piece of the batch.  Some samples are written in a later round:
 * FINISHED_ROUND is left out as long as one waits that is older than the
 * FINISHED_ROUND before, because a reader may have used what is older by then.
 */
#pragma once

#include "base/index.h"
#include "record/perf/data_file.h"
#include "record/perf/newest_records.h"
#include "record/services/service.h"
#include "record/stacks/live_stacks.h"

struct seam_session;

/*
 * The merge: readers must not see an exec of one CPU before a sample of another
 * that is older.  Records of one ring stay in their order.  Rings are read one
 * after the other while others are written to, so a merge has a time, taken
 * before the first ring is read: a later record stays in its ring for the next
 * round, because records before it may have been missed in the rings that were
 * read first.
 */
struct seam_merge_ring {
	struct seam_ring_span span;
	struct seam_ring_header header;	/* of the record at pos */
	size_t pos;			/* records before it were returned */
	uint64_t time;			/* of the record at pos */
	uint32_t id;			/* the caller's */
	bool is_cut;			/* the next record is too late */
};

/* Zeroed is valid and empty. */
struct seam_record_merge {
	size_t sample_time_pos;		/* in a sample, from its header on */
	size_t time_from_end;		/* in other records, to their end */
	uint64_t until;			/* the last time of a record */
	SEAM_ARRAY(struct seam_merge_ring) rings;
	SEAM_ARRAY(void *) heap;	/* of those rings, by time */
	bool is_begun;			/* a record was returned */
};

struct seam_drain {
	struct seam_session *session;	/* borrowed, as all of these */
	struct seam_sources *sources;
	struct seam_data_file *file;
	struct seam_live_stacks *stacks;	/* NULL: none is unwound */
	/* The service whose samples replace the kernel's; or NULL. */
	struct seam_service *superseder;

	SEAM_ARRAY(uint8_t) kept;	/* records of rings that lose some */
	struct seam_record_merge merge;	/* with stacks */
	struct iovec *pieces;		/* two for each live ring, and three */
	struct seam_ring_span *spans;	/* one for each live ring */
	size_t room;			/* live rings that both have room for */
	uint8_t *scratch;		/* for a record that wraps */
	/* Before the programs' rings are copied: no later sample is unwound. */
	uint64_t begin_ns;
	/* in a sample, its header included */
	size_t id_pos, tid_pos, time_pos, raw_pos;
	bool is_last;			/* the next round is the last */
	bool unordered;		/* older records follow: no FINISHED_ROUND */
	/* With stacks: before the last FINISHED_ROUND all records are older. */
	uint64_t finished;
	struct seam_index ids;		/* of the sources, by id */
	size_t n_ids;			/* sources that are in it */
	/* Of the fullest ring, if it was full enough for a wakeup; or -1. */
	int fullest_cpu;
	uint64_t n_sideband;		/* records: names, mappings, tasks */
	/* --off-cpu --overwrite: in place of the file; or NULL */
	struct seam_switch_history *history;
	/* --overwrite: samples of samplers, in place of the file */
	struct seam_newest_records guests;
	uint64_t guests_from_ns;	/* of the newest dropped; 0: none */
	/* --wakers: a bit for each thread that had a SWITCH record; or NULL */
	uint8_t *switched;
};

/*
 * Prepare session.drain, and session.stacks for events whose samples are
 * unwound, once the sources are open and "data" is begun.  0 or -ENOMEM.
 */
int seam_drain_init(struct seam_session *s, struct seam_err *err);
void seam_drain_fini(struct seam_drain *d);

/*
 * Before the sources are enabled: threads that run already are looked at once
 * (blocked_stacks.h), and from now on it is known what they do.
 */
void seam_drain_attached(struct seam_session *s);

/*
 * One round.  Returns the bytes written, 0 when the rings were empty, or
 * -errno of the write; the rings are drained even then, and the records
 * counted as not written.
 */
ssize_t seam_drain_round(struct seam_drain *d, struct seam_err *err);

/*
 * Count a record of @ring; also for rings that no round drains.  False: it is
 * not to be written, as a sample that one of a sampler supersedes.
 */
bool seam_drain_count(struct seam_drain *d, struct seam_source_ring *ring,
		      const struct seam_ring_span *span, size_t pos,
		      const struct seam_ring_header *header);

/* Count the records at @records, which are of no ring and go to the file. */
void seam_drain_count_all(struct seam_drain *d, const uint8_t *records,
			  size_t n);

/*
 * Unwind the samples among @n bytes of records that no round drains, whatever
 * ring they are of: d->stacks->out has all of them then.  Returns the bytes of
 * the records that were taken: fewer where many samples wait for files.
 */
size_t seam_drain_unwind(struct seam_drain *d, const uint8_t *records,
			 size_t n);

/*
 * A write has failed: samples that wait are not written either.  Once, before
 * the file's counts are those of what is left of it.
 */
void seam_drain_drop_waiting(struct seam_drain *d);

/* After a write has failed: empty the rings, and count the records. */
void seam_drain_discard(struct seam_drain *d);
