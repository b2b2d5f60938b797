/* SPDX-License-Identifier: MIT */
/*
 * switch_history.h - the newest switches, for snapshots (--off-cpu)
 *
 * With --overwrite the rings of samples overwrite the oldest records.  Rings of
 * SWITCH records do not: they are drained in every mode, because the recorder
 * must know which threads wait, and because each thread's state depends on its
 * last record, however old that is.  Their records, and the stacks that were read
 * while threads waited, are kept here in place of the file.
 *
 * Beyond SEAM_SWITCH_HISTORY_BYTES the oldest record is forgotten.  Of each
 * thread the last forgotten SWITCH record stays, and the stack that was read
 * since.  A copy has these first, with the time from which on all records are
 * kept: a wait that began before begins there.  Readers find that time in the
 * manifest (SEAM_COUNT_OFF_CPU_FROM_NS).  After a forgotten LOST record no state
 * is known.
 *
 * Bounded: twice the bytes, and SEAM_SWITCH_HISTORY_THREADS threads, of which
 * those are forgotten whose slot another one needs: what they did before their
 * first record is not known then.
 *
 * Threads: one, the recorder's.
 */
#pragma once

#include "base/err.h"
#include "record/perf/newest_records.h"
#include "wire/perf/perf_record.h"

enum {
	/* 200,000 switches: 10 s of 10,000 waits a second. */
	SEAM_SWITCH_HISTORY_BYTES = 8 << 20,
	SEAM_SWITCH_HISTORY_THREADS = 1 << 14,
};

struct seam_last_switch;

/* Zeroed is valid: not used. */
struct seam_switch_history {
	struct seam_newest_records records;
	struct seam_last_switch *threads;	/* slots, by tid */
	uint64_t forgotten_ns;	/* of the newest forgotten record; 0: none */
	/* in a SAMPLE, its header included; before the end of another record */
	size_t tid_pos, time_pos, tid_from_end, time_from_end;
};

/* For records with the fields of @common in common.  0 or -ENOMEM. */
int seam_switch_history_init(struct seam_switch_history *history,
			     const struct seam_perf_attr *common,
			     struct seam_err *err);

/*
 * Add a record with its header, in the order of time: SWITCH, LOST, SAMPLE; and
 * EXIT, which ends a thread and is in no copy.  False: no memory.
 */
bool seam_switch_history_add(struct seam_switch_history *history,
			     const void *record);

/*
 * A copy of all records, oldest first: the caller frees .items.  *@from_ns: from
 * then on none is missing; 0: since the first.  0 or -ENOMEM.
 */
struct seam_switch_copy {
	SEAM_ARRAY(uint8_t) records;
};
int seam_switch_history_copy(const struct seam_switch_history *history,
			     struct seam_switch_copy *copy, uint64_t *from_ns,
			     struct seam_err *err);

void seam_switch_history_fini(struct seam_switch_history *history);
