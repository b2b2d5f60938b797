/* SPDX-License-Identifier: MIT */
/*
 * start.h - begin and end in a process
 *
 *	constructor, with SEAM_TRACE	seam_fdr_begin()
 *	  options		what to record
 *	  source_*		where to
 *	  images		what is loaded, and its functions
 *	  announce_functions	their ids
 *	  select		those that are wanted
 *	  patch			their sleds
 *	dlopen(), dlclose()		seam_fdr_refresh()
 *	a seccomp filter		seam_fdr_end()
 *
 * The library does nothing without SEAM_TRACE, until the program itself begins;
 * with it, it connects to the recorder when an image has calls to record; and
 * it does nothing at all with the rights of another user (AT_SECURE).  A
 * program under valgrind, whose CPU is simulated, is not recorded.
 *
 * A library that is loaded is patched when dlopen() returns, so what its
 * constructors call is not recorded.
 *
 * Not in handlers.  Any thread may call; one at a time is in here.  errno is
 * kept.
 */
#ifndef SEAM_FDR_START_H
#define SEAM_FDR_START_H

#include "traced/fdr/options.h"
#include "traced/fdr/sleds/images.h"

/*
 * Begin to record as @options, SEAM_TRACE's text, says; what is in there is
 * copied.  0; -EALREADY; -EPERM: not in this process; -EINVAL; or the failure's
 * errno.  @why, of @why_bytes, has the cause.  Where only the patching of some
 * sleds is refused, the recorder's user gets a note, and the rest is recorded.
 */
int seam_fdr_begin(const char *options, char *why, size_t why_bytes);

/*
 * Leave all sleds alone, and complete the program's own bundle, if there is
 * one; seam_fdr_begin() may follow.  0 or the first -errno of the bundle.  With
 * @why not NULL it is for good, and a note for the recorder's user: from then
 * on there is no system call of ours.
 */
int seam_fdr_end(const char *why);

/* What seam_fdr_end() has ended with a @why goes on: that did not come true. */
void seam_fdr_resume(void);

/* The process ends: complete what can be. */
void seam_fdr_at_exit(void);

/* Whether it has begun and not ended.  Written in here, read anywhere. */
extern _Atomic bool seam_fdr_is_on;

/*
 * Take libraries into account that were loaded since; and whether loading one
 * matters.
 */
void seam_fdr_refresh(void);
bool seam_fdr_wants_loads(void);

/*
 * Record, or not, the functions whose names match @glob, or the one with this
 * id; also while threads run.  The number of functions; -ENODATA where
 * recording has not begun; or the failure's errno.
 */
int64_t seam_fdr_set_wanted(const char *glob, bool is_wanted);
int64_t seam_fdr_set_wanted_id(uint32_t id, bool is_wanted);

/*
 * The ids of functions with sleds whose names match @glob, ascending: how many
 * there are, of which @ids gets the first @n; or -errno.
 */
int64_t seam_fdr_find_functions(const char *glob, uint32_t *ids, size_t n);

/* A type of events or a function was registered: the recorder gets its name. */
void seam_fdr_names_changed(void);

/* Send @text, a line for the recorder's user. */
__attribute__((format(printf, 1, 2)))
void seam_fdr_note(const char *format, ...);

#endif /* SEAM_FDR_START_H */
