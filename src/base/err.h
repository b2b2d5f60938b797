/* SPDX-License-Identifier: MIT */
/*
 * err.h - an error code and the chain of its causes
 *
 * Fallible functions return 0 or a negative errno and take a
 * struct seam_err * last.  The function that detects the failure sets it; a
 * caller with more information (which file, which record) adds a line:
 *
 *	seam: cannot report 'a.data'
 *	  caused by: record 412 at byte 0x9f20
 *	  caused by: JIT_CODE_LOAD: code_size 99 does not fit in 64 bytes
 *
 * The struct is on the stack of the caller that prints it: no heap, no thread
 * state, so it works when memory ran out.  NULL is allowed and means
 * that only the code matters.
 */
#pragma once

#include <stdio.h>

enum {
	SEAM_ERR_CAUSES = 6,
	SEAM_ERR_TEXT = 400,
};

struct seam_err {
	int code;		/* 0, or a negative errno */
	int n_causes;		/* root cause first */
	char cause[SEAM_ERR_CAUSES][SEAM_ERR_TEXT];
};

/* Start a chain.  Returns @code, so: return seam_err_set(err, -EIO, ...); */
__attribute__((format(printf, 3, 4)))
int seam_err_set(struct seam_err *err, int code, const char *fmt, ...);

/* Start a chain with the text and errno's, after ": ".  Returns -errno. */
__attribute__((format(printf, 2, 3)))
int seam_err_errno(struct seam_err *err, const char *fmt, ...);

/* Start a chain with "out of memory".  Returns -ENOMEM. */
int seam_err_no_memory(struct seam_err *err);

/*
 * Add context to a failure on its way up.  Returns @code.  When the chain is
 * full the newest line replaces the last: the root cause is never lost.
 */
__attribute__((format(printf, 3, 4)))
int seam_err_add(struct seam_err *err, int code, const char *fmt, ...);

/* Print the chain, newest context first, after "@prefix: ". */
void seam_err_print(FILE *out, const char *prefix, const struct seam_err *err);

/* The chain in one line, newest context first; "" when there is no cause. */
void seam_err_text(const struct seam_err *err, char text[SEAM_ERR_TEXT]);
