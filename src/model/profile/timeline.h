/* SPDX-License-Identifier: MIT */
/*
 * timeline.h - what one thread did, in the order of time
 *
 *	seam_timelines_init(&timelines, &profile);
 *	seam_timeline_open(&timeline, &timelines, &selected, thread);
 *	while ((r = seam_timeline_next(&timeline, &item)) > 0)
 *		...
 *
 * Samples, calls and marks are merged while they are read.  The samples' order
 * by thread takes 4 bytes a sample; calls are read from their log as the iterator
 * reaches them, so memory is a batch of events of each log that is being read,
 * and the calls that are open.
 *
 * Samples that are sums of calls (an event that is_measured) have no place
 * in time and are not in it: the calls themselves are.
 *
 * Threads: any number may read timelines of one profile at the same time,
 * each with an iterator of its own.
 */
#pragma once

#include "model/profile/selection.h"
#include "model/profile/waits.h"

/* Of equal times, those of logs come first, in the order of their log. */
enum seam_item_kind {
	SEAM_ITEM_BEGIN,	/* a call begins */
	SEAM_ITEM_ARGUMENT,	/* of the call that has just begun */
	SEAM_ITEM_END,		/* the innermost open call of its log ends */
	SEAM_ITEM_CUSTOM,	/* the program wrote bytes into its log */
	SEAM_ITEM_TYPED,	/* likewise, with a type */
	SEAM_ITEM_LOSS,		/* something is missing from here on */
	SEAM_ITEM_SAMPLE,
};

struct seam_item {
	uint64_t time_ns;
	enum seam_item_kind kind;
	/* BEGIN, END: of the profile; SEAM_NONE: in none of its stacks */
	uint32_t function;
	uint32_t depth;		/* calls that are open around it */
	uint32_t type;		/* TYPED */
	union {
		uint64_t begin_ns;	/* END: when the call began */
		uint64_t value;		/* ARGUMENT; LOSS: records, or 0 */
		uint64_t sample;	/* SAMPLE: its index in the columns */
	};
	/*
	 * CUSTOM, TYPED, and LOSS where the log has a mark of lost records:
	 * borrowed from the log.
	 */
	struct seam_bytes data;
};

/* An interval that the program marked by two events (model/xray/marked.h). */
enum { SEAM_MARKED_NAME = 256 };
struct seam_marked {
	uint64_t begin_ns, end_ns;
	struct seam_off_time off;	/* of it, the thread had no CPU */
	char name[SEAM_MARKED_NAME];
	struct seam_bytes text;		/* printable; borrowed from the log */
};

/* 0 to go on. */
typedef int seam_marked_fn(void *context, const struct seam_marked *marked);

/* How the items of a track are read. */
struct seam_track_reader {
	/*
	 * Its marked intervals, as they end, of a thread that has @waits.  0,
	 * -ENOMEM, or what @found returned.
	 */
	int (*marked)(const struct seam_track *track,
		      struct seam_wait_cursor waits, seam_marked_fn *found,
		      void *context);
	/* Open: a cursor at the first item.  0 or -ENOMEM. */
	int (*open)(const struct seam_track *track, void **cursor);
	/* 1 with the next item, 0 at the end, or -errno. */
	int (*next)(void *cursor, struct seam_item *item);
	void (*close)(void *cursor);
};

/* The tables of a profile whose rows have a thread and a time. */
enum seam_timeline_table {
	SEAM_TIMELINE_SAMPLES,
	SEAM_TIMELINE_TRACKS,
	SEAM_TIMELINE_MARKS,
	SEAM_N_TIMELINE_TABLES,
};

/* Their order, by thread and time. */
struct seam_timelines {
	const struct seam_profile *profile;
	struct seam_thread_rows {
		uint32_t *items;	/* indices */
		size_t *first;		/* by thread, and one more: the end */
	} tables[SEAM_N_TIMELINE_TABLES];
};

/*
 * @profile must outlive @timelines and not change.  0, -ENOMEM, or -EOVERFLOW
 * for 2^32 samples and more.
 */
int seam_timelines_init(struct seam_timelines *timelines,
			const struct seam_profile *profile);
void seam_timelines_fini(struct seam_timelines *timelines);

/* Not to be moved or copied while it is open. */
struct seam_timeline {
	const struct seam_timelines *all;
	const struct seam_selected *selected;	/* NULL: everything counts */
	uint32_t thread;
	size_t next[SEAM_N_TIMELINE_TABLES];	/* of the thread's rows */
	uint32_t depth;			/* calls that are open */
	SEAM_ARRAY(struct seam_open_track *) open;	/* a heap by time */
	bool is_taken;			/* its top is the last item */
};

/*
 * The items of @thread that count by @selected: seam_selected_has() for a
 * sample, _has_call() for a call, of which both BEGIN and END count or neither,
 * _has_mark() for CUSTOM and TYPED, _has_loss() for a LOSS.  Both must outlive
 * @timeline.
 */
void seam_timeline_open(struct seam_timeline *timeline,
			const struct seam_timelines *timelines,
			const struct seam_selected *selected, uint32_t thread);

/* 1 with the next item, 0 at the end, or -errno. */
int seam_timeline_next(struct seam_timeline *timeline,
		       struct seam_item *item);
void seam_timeline_close(struct seam_timeline *timeline);
