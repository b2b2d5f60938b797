/* SPDX-License-Identifier: MIT */
/*
 * browser.h - a profile on a terminal, by keyboard
 *
 * A table of functions, modules, threads or processes; the callers and callees
 * of a function as a tree; the code of a function; filters by thread, module
 * and time.  The profile may change between two calls of seam_browser_show(),
 * as that of a recording that is being made.
 *
 * The terminal is restored by seam_browser_close(), when the process exits, and
 * while it is stopped (SIGTSTP).
 *
 * Threads: one, and one browser a process.
 */
#pragma once

#include "model/profile/selection.h"

struct seam_browser;

/*
 * Take the terminal.  @is_live: more is coming, so there are keys to pause and
 * to show all so far.  NULL: it is no terminal that can be used; the message
 * has the reason.
 */
struct seam_browser *seam_browser_open(const char *title, bool is_live,
				       struct seam_err *err);
void seam_browser_close(struct seam_browser *browser);

/* What a browser gets from its caller; each may be NULL. */
struct seam_browser_source {
	/* The annotated code of @symbol as text, which free() ends. */
	char *(*annotate)(void *context, const struct seam_selected *selected,
			  const char *symbol);
	void *context;
};
void seam_browser_set_source(struct seam_browser *browser,
			     const struct seam_browser_source *source);

/*
 * Draw @profile, borrowed until the next call, and @header, a line of text; with
 * @warns it says that something was lost.
 */
void seam_browser_show(struct seam_browser *browser,
		       const struct seam_profile *profile, const char *header,
		       bool warns);

/* Take the keys that were pressed, and draw.  False: the user ends it. */
bool seam_browser_keys(struct seam_browser *browser);

/* The user wants other samples than shown: call seam_browser_show(). */
bool seam_browser_wants(struct seam_browser *browser);
bool seam_browser_shows_all(const struct seam_browser *browser);
bool seam_browser_is_paused(const struct seam_browser *browser);
