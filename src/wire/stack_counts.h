/* SPDX-License-Identifier: MIT */
/*
 * stack_counts.h - how user stacks were unwound, and why some ended early
 *
 * The recorder, or the reader of copies of stacks, counts; the manifest stores
 * the counts; "seam record" and "seam report --stats" describe them.
 *
 * Threads: one; counts of several are added up.
 */
#pragma once

#include "base/base.h"

/*
 * How a user stack ended.  Complete: each of its frames was read from this very
 * sample, and nothing called the outermost.  All others: outer frames are
 * missing.  The numbers are in guest records and in RAW data (doc/formats,
 * guest.md and unwound.md): values are appended, none is used again.
 */
enum seam_stack_end {
	SEAM_STACK_COMPLETE,		/* at the entry of program or thread */
	SEAM_STACK_TRUNCATED,		/* deeper than the copy of the stack */
	SEAM_STACK_WITHOUT_CFI,		/* code without CFI or frame pointer */
	SEAM_STACK_BROKEN_CFI,		/* CFI that breaks the format */
	SEAM_STACK_NO_FILE,		/* not here, or of another build */
	SEAM_STACK_NOT_READY,		/* not read before the memory of */
					/* waiting samples was full */
	SEAM_STACK_NO_MAPPING,		/* nothing executable is mapped */
	SEAM_STACK_UNREADABLE,		/* a word that is not on the stack */
	SEAM_STACK_LOST_REGISTER,	/* CFI needs a value that is lost */
	SEAM_STACK_NO_PROGRESS,		/* the next frame is not above */
	SEAM_STACK_TOO_DEEP,		/* more frames than there is room for */
	SEAM_STACK_OTHER_STACK,		/* of a signal: what it interrupted */
					/* is on a stack that was not copied */
	SEAM_STACK_BEYOND,		/* a frame ends above what the kernel */
					/* can copy */
	SEAM_STACK_JOINED,		/* by a reader: with outer frames of */
					/* other samples, as far as the entry */
	SEAM_STACK_N_ENDS,
	/* Samples whose stack was not unwound; these are no ends. */
	SEAM_STACK_OF_32_BIT = 253,	/* by frame pointers, by the kernel */
	SEAM_STACK_ABSENT = 254,	/* no user stack */
	SEAM_STACK_UNREPORTED = 255,	/* not known */
};

enum {
	SEAM_STACK_MAX_MODULES = 32,
	SEAM_STACK_PATH = 232,
	/* Source: Linux, kernel/events/core.c: a sample's size has 16 bits. */
	SEAM_STACK_MAX_COPY = 65528,
};

/* Stacks that ended early in one file, for one reason. */
struct seam_stack_module {
	uint64_t n;
	uint8_t end;			/* enum seam_stack_end */
	char path[SEAM_STACK_PATH];	/* its end, if it is longer */
};

/* Zeroed is valid and empty. */
struct seam_stack_counts {
	uint64_t n_ended[SEAM_STACK_N_ENDS];
	uint64_t n_empty;	/* samples without user stack; not in n_ended */
	/* Of 32-bit tasks: by frame pointers, as the kernel has them; nor is */
	uint64_t n_32_bit;	/* this in n_ended */
	/*
	 * Samples whose kernel part has as many frames as the kernel allows
	 * (kernel.perf_event_max_stack): its outer ones may be missing.
	 */
	uint64_t n_kernel_cut;
	uint64_t n_jvm;		/* ended early in a process with libjvm.so */
	uint64_t dump_bytes;	/* of stack copied for a sample, at most */
	/*
	 * The worst files: a full list drops its smallest entry for a new one,
	 * so the numbers are lower bounds.  A truncated stack has no file.
	 */
	struct seam_stack_module modules[SEAM_STACK_MAX_MODULES];
	uint64_t n_modules;
};

/* Whether only the outer part of the stack was not there to be read. */
static inline bool seam_stack_end_is_cut(uint8_t end)
{
	return end == SEAM_STACK_TRUNCATED || end == SEAM_STACK_OTHER_STACK ||
	       end == SEAM_STACK_BEYOND;
}

/*
 * Of each end its name in JSON ("without_cfi"), what it means ("code without
 * call frame information"), and what a user can do about most stacks ending so.
 */
struct seam_stack_end_words {
	const char *key, *text, *advice;
};

extern const struct seam_stack_end_words seam_stack_ends[SEAM_STACK_N_ENDS];

/* The end of that key; SEAM_STACK_N_ENDS: unknown. */
enum seam_stack_end seam_stack_end_parse(const char *key);

/*
 * Count a stack that ended so.  @path: of the file of its outermost frame, or
 * a name such as "[jit]"; NULL: not known.  It is copied.
 */
void seam_stack_counts_add(struct seam_stack_counts *counts,
			   enum seam_stack_end end, const char *path);

/* Count @n stacks of one file, as read from a manifest. */
void seam_stack_counts_add_module(struct seam_stack_counts *counts,
				  enum seam_stack_end end, const char *path,
				  uint64_t n);

/* Add the counts of @from. */
void seam_stack_counts_merge(struct seam_stack_counts *counts,
			     const struct seam_stack_counts *from);

/* Whether samples were to be unwound; not all are stacks. */
bool seam_stack_counts_exist(const struct seam_stack_counts *counts);

/* How many stacks there were, and what share is complete (0 to 100). */
uint64_t seam_stack_counts_total(const struct seam_stack_counts *counts);
double seam_stack_counts_percent(const struct seam_stack_counts *counts);

/*
 * Order the files: most stacks first.  Files are told apart by their reason
 * too.
 */
void seam_stack_counts_sort(struct seam_stack_counts *counts);

/*
 * Why stacks are incomplete and what to do about it, in one line; names in it
 * are not escaped.  False: at least 90 % are complete or joined, or there are
 * none.
 */
bool seam_stack_counts_advise(const struct seam_stack_counts *counts,
			      char *text, size_t cap);
