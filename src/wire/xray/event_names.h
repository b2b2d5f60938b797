/* SPDX-License-Identifier: MIT */
/*
 * event_names.h - the names of typed events: xray/PID.events
 *
 * An XRay log has the number of an event's type, not the name under which the
 * program registered it.  The names are in a text file beside the log, a line
 * for each type: its number in decimal, a space, the name as a JSON string.
 *
 *	7 "request"
 *	8 "cache \"miss\""
 */
#pragma once

#include <stdio.h>

#include "base/array.h"
#include "base/err.h"
#include "base/strings.h"

/* A type has 16 bits, and a name may fill a line. */
enum {
	SEAM_EVENT_NAMES_MAX_BYTES = 16 << 20,
	SEAM_EVENT_NAME_MAX = 1024,
};

struct seam_event_name {
	uint16_t type;
	uint32_t name;			/* of strings */
	size_t line;
};

/* Zeroed is valid and empty. */
struct seam_event_names {
	SEAM_ARRAY(struct seam_event_name) items;	/* by type */
	struct seam_strings strings;
};

/*
 * Read @text, which may be hostile.  The last line of a type counts.  0;
 * -EBADMSG with the number of the first line that is not of the form, and
 * those before it are in @names; -ENOMEM.
 */
int seam_event_names_read(struct seam_event_names *names,
			  struct seam_bytes text, struct seam_err *err);

/* The line of a type, as seam_event_names_read() reads it. */
void seam_event_name_write(FILE *out, uint16_t type, const char *name);

/* The name of @type, borrowed; NULL: it has none. */
const char *seam_event_name_find(const struct seam_event_names *names,
				 uint16_t type);
void seam_event_names_fini(struct seam_event_names *names);
