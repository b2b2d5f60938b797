/* SPDX-License-Identifier: MIT */
/*
 * page_rows.h - the samples, calls and marks of a page
 *
 * A page is for a browser, so it has at most so many samples and so many
 * calls: of larger recordings, samples of one stack, thread and event that
 * are near each other are one row, short waits of a stack are added up, and the
 * shortest calls are left out.  No sum changes by that.
 */
#pragma once

#include "base/strings.h"
#include "export/page/page.h"
#include "export/profile/parts.h"

enum {
	SEAM_PAGE_MARKS = 200000,
	SEAM_PAGE_WORDS = 500000,
};

/* Times are since the start of the recording. */
struct seam_page_sample {
	uint64_t time_ns, weight, count;
	uint32_t thread, stack, reason, waker;
	uint16_t cpu;
	uint8_t event;
	uint8_t is_placed;
};

struct seam_page_call {
	uint64_t begin_ns, duration_ns;
	uint64_t hidden_ns;	/* in calls by it that are left out */
	struct seam_off_time off;	/* of its duration, without a CPU */
	uint32_t function, thread, text;
	uint16_t depth;
};

/* In the order of MARK_KINDS in viewer/src/profile.ts. */
enum seam_page_mark_kind {
	SEAM_PAGE_CUSTOM, SEAM_PAGE_TYPED, SEAM_PAGE_LOSS, SEAM_PAGE_JIT,
	SEAM_PAGE_TRIGGER,
};

struct seam_page_mark {
	uint64_t time_ns, duration_ns;
	uint32_t thread, name, text;
	uint8_t kind;
};

/* An interval that the program marked (struct seam_marked). */
struct seam_page_interval {
	uint64_t begin_ns, duration_ns;
	struct seam_off_time off;
	uint32_t thread, name, text;
};

struct seam_page_rows {
	const struct seam_page_part *part;
	const struct seam_parts *parts;
	uint64_t max_rows;		/* of each table */
	struct seam_strings words;
	SEAM_ARRAY(struct seam_page_sample) samples;	/* by time */
	SEAM_ARRAY(struct seam_page_call) calls;	/* by thread, begin */
	SEAM_ARRAY(struct seam_page_mark) marks;	/* by time */
	/* by thread, begin; the longer of two that begin together first */
	SEAM_ARRAY(struct seam_page_interval) intervals;
	uint64_t n_merged;		/* samples that are part of a row */
	uint64_t n_short_calls;		/* left out */
	uint64_t least_call_ns;		/* of those that are not */
	uint64_t n_more_marks;		/* left out */
	uint64_t n_more_intervals;	/* likewise */
	uint64_t n_more_words;		/* texts that are "" therefore */
	bool is_failed;			/* out of memory */
};

/*
 * At most @max_rows samples, calls and intervals each.  0 or -errno, -EFBIG for more distinct
 * stacks; seam_page_rows_fini() is due in any case.
 */
int seam_page_rows_init(struct seam_page_rows *rows,
			const struct seam_page_part *part,
			const struct seam_parts *parts, uint64_t max_rows);
void seam_page_rows_fini(struct seam_page_rows *rows);

/* The number of @text among the words. */
uint32_t seam_page_word(struct seam_page_rows *rows, const char *text);

/* @time_ns since the start of the recording, cut as seam_page_number(). */
uint64_t seam_page_since(const struct seam_profile *profile, uint64_t time_ns);

/* At most 2^52: the page's numbers are doubles. */
uint64_t seam_page_number(uint64_t v);

/* Add a mark, before seam_page_sort_marks(). */
void seam_page_add_mark(struct seam_page_rows *rows,
			struct seam_page_mark mark);
int seam_page_sort_marks(struct seam_page_rows *rows);
