/* SPDX-License-Identifier: MIT */
/*
 * guest_print.h - the RAW data of a sample as a guest or a symbol record
 *
 * For dumps: ids stay numbers, ends and states have their names.
 */
#ifndef SEAM_GUEST_PRINT_H
#define SEAM_GUEST_PRINT_H

#include "wire/guest/guest_record.h"
#include "wire/line.h"

/*
 * Add a field of the name "guest", or "symbol", to @line:
 *
 *	{"adapter":1,"table":5,"vmstate":"LFUNC",...,"segments":[
 *	 {"join":0,...,"frames":[{"id":2,"kind":"guest","line":3}]}]}
 *	{"adapter":1,"table":5,"id":2,"kind":"guest",...,"name":"f"}
 *
 * A record that breaks the format is {"damaged":"why"}.  Names end at a NUL.
 */
void seam_guest_print(struct seam_line *line, enum seam_guest_event event,
		      struct seam_bytes raw);

#endif /* SEAM_GUEST_PRINT_H */
