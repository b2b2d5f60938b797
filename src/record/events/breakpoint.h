/* SPDX-License-Identifier: MIT */
/* breakpoint.h - an address of the target, watched by the CPU */
#ifndef SEAM_BREAKPOINT_H
#define SEAM_BREAKPOINT_H

#include "record/events/event_list.h"

/*
 * Append "mem:ADDR[/LEN][:rwx]"; without letters both reads and writes, of 4
 * bytes unless LEN says 1, 2, 4 or 8.
 */
int seam_breakpoint_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

#endif /* SEAM_BREAKPOINT_H */
