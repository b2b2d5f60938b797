/* SPDX-License-Identifier: MIT */
/* breakpoint.h - a hardware breakpoint at an address of the target */
#ifndef SEAM_BREAKPOINT_H
#define SEAM_BREAKPOINT_H

#include "record/events/event.h"

/*
 * Read "mem:ADDR[/LEN][:rwx[:modifiers]]"; without letters both reads and
 * writes, of 4 bytes unless LEN is 1, 2 or 8.
 */
int seam_breakpoint_parse(struct seam_event *event, const char *text,
			  struct seam_err *err);

#endif /* SEAM_BREAKPOINT_H */
