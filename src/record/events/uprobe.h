/* SPDX-License-Identifier: MIT */
/* uprobe.h - a probe at a function of an ELF file */
#ifndef SEAM_UPROBE_H
#define SEAM_UPROBE_H

#include "record/events/event.h"

/*
 * Read "uprobe:/path:symbol|0xoffset[%return]".  A symbol is looked up in the
 * file's tables, an offset is one in the file.  -ENOENT: no such symbol, or it
 * lies outside of the file.
 */
int seam_uprobe_parse(struct seam_event *event, const char *text,
		      struct seam_err *err);

#endif /* SEAM_UPROBE_H */
