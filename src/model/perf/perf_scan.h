/* SPDX-License-Identifier: MIT */
/*
 * perf_scan.h - one pass over the records of a perf.data file
 *
 * Samples become columns, with a task key for their thread and a callchain id
 * for their stack; the side-band is collected, in the order of the file.
 * Nothing is looked up yet: names and mappings may come later in the file than
 * the samples they apply to.  A large file is scanned on all cores
 * (doc/design/model.md).
 */
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "model/guest/guest_merge.h"
#include "model/perf/callchains.h"
#include "model/perf/cgroups.h"
#include "model/perf/stack_joins.h"
#include "model/perf/switches.h"
#include "model/perf/tasks.h"
#include "model/profile/profile.h"
#include "wire/guest/guest_decode.h"
#include "wire/perf/perf_data.h"
#include "wire/perf/perf_sample.h"

/* The event of @name (wire/perf/wait_events.h) in @data; or SEAM_NONE. */
uint32_t seam_scan_find_event(const struct seam_perf_data *data,
			      const char *name);

/* What @event is, by its attr and its name. */
enum seam_guest_event
seam_scan_guest_event(const struct seam_perf_event *event);

/* A symbol record, still to be decoded. */
struct seam_guest_record {
	int32_t pid;
	struct seam_bytes raw;	/* in the file, or in the scan's arena */
};

/* What one scan took of both events.  Zeroed is valid and empty. */
struct seam_scan_guest {
	SEAM_ARRAY(struct seam_guest_record) symbols;
	struct seam_guest_counts counts;
	struct seam_guest_words words;		/* scratch: a merged chain */
};

/* A thread was woken (--wakers). */
struct seam_waking {
	uint64_t time_ns;
	int32_t tid;		/* of the thread */
	uint32_t by;		/* task key; SEAM_NONE: an interrupt */
};

struct seam_scan_counter {
	uint64_t id, time_ns, value;
	uint64_t order;		/* in the file */
};

/* Zeroed is valid and empty. */
struct seam_scan_counters {
	SEAM_ARRAY(struct seam_scan_counter) items;
	size_t next;
};

/* A record of the side-band, which is decoded later (sideband.h). */
struct seam_sideband_record {
	struct seam_perf_record record;
	/* where its sample_id has no time: the time of the sample before it */
	uint64_t time_ns;
};

/*
 * A sample with user registers and a copy of the stack: where its record is,
 * until stack_dumps.h makes a callchain of it.
 */
struct seam_stack_dump {
	const uint8_t *payload;		/* in the file; NULL: it was packed */
	uint32_t size;
	uint32_t record;		/* of the SAMPLE records of its scan */
	uint32_t sample;		/* in the columns of its scan */
	uint16_t event;			/* whose attr describes the record */
	uint16_t misc;			/* of the record's header */
};

/* What a scan takes of samples. */
enum seam_scan_what {
	SEAM_SCAN_SAMPLES,	/* columns and callchains */
	SEAM_SCAN_RECORDS,	/* and the column of record numbers */
	SEAM_SCAN_TIMES,	/* the first and the last time alone */
};

struct seam_perf_scan {
	const struct seam_perf_data *data;
	struct seam_bytes bytes;		/* of the file that is read */
	uint64_t begin, end;			/* where records begin */
	uint64_t limit;				/* where all records end */
	uint64_t stop;				/* where reading stopped */
	uint64_t now;				/* time of the last sample */

	/* The last sample's, because the next is often the same: */
	int32_t pid, tid;
	uint32_t key;				/* of these; valid if tid */
	uint64_t id;
	uint32_t event;				/* of this id; valid if id */
	/* The event whose SWITCH records are taken; SEAM_NONE: none. */
	uint32_t switch_event;
	struct seam_switches switches;		/* thread: task key */
	uint32_t waking_event;			/* or SEAM_NONE */
	/* likewise; its samples weigh the number of a system call */
	uint32_t blocked_event;
	SEAM_ARRAY(struct seam_waking) wakings;
	struct seam_samples samples;	/* thread: task key; stack: chain */
	struct seam_callchains chains;
	struct seam_cgroup_ids cgroups;	/* samples.cgroup: numbers, plus 1 */
	struct seam_tasks tasks;		/* keys only */
	struct seam_arena arena;		/* unpacked payloads */
	SEAM_ARRAY(struct seam_sideband_record) sideband;
	uint64_t first_ns, last_ns;		/* of samples; UINT64_MAX, 0 */
	enum seam_scan_what what;
	uint32_t n_sample_records;
	bool is_packed;				/* has compressed records */
	bool is_over;				/* an earlier part failed */
	uint64_t n_records;
	uint64_t n_damaged;			/* samples that do not parse */
	uint64_t n_unknown;			/* records of no known event */
	SEAM_ARRAY(struct seam_stack_dump) dumps;
	struct seam_stack_walks walks;		/* samples by their columns */
	struct seam_scan_guest guest;
	size_t first_sample;		/* once joined: in all columns */
	int error;				/* 0, or why it stopped */
	struct seam_err why;
	struct seam_scan_counters counters;	/* of READ values */
};

/*
 * How many parts to scan the records of @data in [@begin, @end) in: 1 where
 * they are few or cannot be divided.
 */
size_t seam_perf_scan_parts(const struct seam_perf_data *data, uint64_t begin,
			    uint64_t end);

/*
 * Scan the records of @bytes in [@begin, @end) in @n parts, into @scans[0]
 * to @scans[n - 1], in the order of the file; each is to be freed with
 * seam_perf_scan_fini().  The result is the same for any @n.  0 or -ENOMEM.
 */
int seam_perf_scan(const struct seam_perf_data *data, struct seam_bytes bytes,
		   uint64_t begin, uint64_t end, struct seam_perf_scan *scans,
		   size_t n, enum seam_scan_what what);

void seam_perf_scan_fini(struct seam_perf_scan *scan);

/* What the samples of all scans refer to. */
struct seam_scan_joined {
	struct seam_samples *samples;
	struct seam_callchains *chains;
	struct seam_cgroup_ids *cgroups;
	struct seam_tasks *tasks;
};

/*
 * Move the samples of @scans, their callchains, cgroups and task keys to @all,
 * which are empty: records of the side-band may use keys only after.  0 or
 * -ENOMEM.
 */
int seam_scan_join(struct seam_perf_scan *scans, size_t n,
		   const struct seam_scan_joined *all);
