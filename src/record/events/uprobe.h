/* SPDX-License-Identifier: MIT */
/* uprobe.h - a point in a file's code, wherever that file runs */
#ifndef SEAM_UPROBE_H
#define SEAM_UPROBE_H

#include "record/events/event_list.h"

/*
 * Append "uprobe:/path:symbol|0xoffset[%return]".  A symbol is looked up in
 * the file's tables, an offset is one in the file.  -ENOENT: no such symbol,
 * or it lies outside of the file.
 */
int seam_uprobe_add(struct seam_event_list *list, const char *text,
		    struct seam_err *err);

/* Whether seam_uprobe_add() made @event. */
bool seam_uprobe_is(const struct seam_event *event);

#endif /* SEAM_UPROBE_H */
