/* SPDX-License-Identifier: MIT */
/*
 * xray_functions.h - what a traced program announces: where its functions are
 *
 * Records of calls have a function's id and nothing else.  The program sends
 * what its ids mean to the recorder, as records of the service of functions
 * (trace_service.h), of type PERF_RECORD_SAMPLE, in the byte order of the
 * machine.  An id always means the same function.
 *
 *	image		a program or library
 *	functions	ids and addresses of some functions of an image
 *	event type	a name for a number of typed events
 *	trigger		a hit of one of the user's triggers; also in the data
 *			of a thread's own ring
 *	match		how many functions a trigger matches
 *	name		of a function in no image, which the program registered
 *
 * The writers run in the traced program: they call memcpy() and memset()
 * alone.  The reader trusts nothing.
 */
#pragma once

#include "wire/xray/xray.h"

enum {
	SEAM_XRAY_MAX_ADDRESSES = 4096,		/* of a record */
	SEAM_XRAY_BUILD_ID_BYTES = 20,
	SEAM_XRAY_MAX_PATH = 4096,		/* with its 0 */
	SEAM_XRAY_MAX_NAME = 256,		/* likewise */
	/* the largest of these records, as a ring takes it */
	SEAM_XRAY_MAX_ANNOUNCEMENT = 16 + SEAM_XRAY_MAX_ADDRESSES * 8,
};

enum seam_xray_announcement_kind {
	SEAM_XRAY_ANNOUNCED_IMAGE = 1,
	SEAM_XRAY_ANNOUNCED_FUNCTIONS,
	SEAM_XRAY_ANNOUNCED_EVENT_TYPE,
	SEAM_XRAY_ANNOUNCED_TRIGGER,
	SEAM_XRAY_ANNOUNCED_MATCH,
	SEAM_XRAY_ANNOUNCED_NAME,
};

struct seam_xray_image {
	uint32_t kind;
	uint32_t image;			/* a number of the program's own, >0 */
	uint64_t bias;			/* load address - link address */
	uint8_t build_id[SEAM_XRAY_BUILD_ID_BYTES];	/* and zeroes */
	uint8_t build_id_bytes;		/* 0: not known */
	uint8_t entries_only;		/* 1: exits are not recorded */
	const char *path;		/* borrowed; "" where not known */
};

struct seam_xray_addresses {
	uint32_t kind;
	uint32_t image;			/* 0: addresses are absolute */
	uint32_t first_id;
	uint32_t n;			/* 1 to SEAM_XRAY_MAX_ADDRESSES */
	/* by link address, of the first instruction; borrowed, aligned */
	const uint64_t *link_addresses;
};

/* A type of events, below 2^16; or a function in no image. */
struct seam_xray_named {
	uint32_t kind;			/* EVENT_TYPE or NAME */
	uint32_t number;		/* the type; the function's id */
	const char *name;		/* borrowed */
};

struct seam_xray_trigger {
	uint32_t kind;
	uint32_t trigger;		/* index, in the order of the options */
	uint32_t tid;
	uint32_t number;		/* 1 for the process' first */
	uint64_t tsc;			/* of the hit */
	uint64_t ticks;			/* the call's length; 0: calls:NAME */
	uint32_t function;
	uint32_t unused;		/* 0 */
};

/* Functions that were found for a trigger, besides those announced before. */
struct seam_xray_match {
	uint32_t kind;
	uint32_t trigger;		/* index, in the order of the options */
	uint32_t n_functions;
	uint32_t unused;		/* 0 */
};

/*
 * A record has the members up to the pointer as they are in memory, and then
 * the addresses, or the text with zeroes up to a multiple of 8 bytes.
 */
struct seam_xray_announcement {
	union {
		uint32_t kind;	/* enum seam_xray_announcement_kind */
		struct seam_xray_image image;
		struct seam_xray_addresses addresses;
		struct seam_xray_trigger trigger;
		struct seam_xray_match match;
		struct seam_xray_named named;
	};
};

/*
 * Write the record's payload to @buf, of @cap bytes.  Returns its size, a
 * multiple of 8, or 0 where it does not fit or is against the limits above.
 * Longer paths and names are cut.
 */
size_t seam_xray_write_announcement(uint8_t *buf, size_t cap,
				const struct seam_xray_announcement *a);

/*
 * Read the payload at @bytes, which is aligned to 8 and outlives @a.  0, or
 * -EBADMSG: the writer makes no such bytes, and nothing of @a is valid.  What
 * the strings and numbers say is not checked, but for ids, which exist.
 */
int seam_xray_read_announcement(struct seam_bytes bytes,
				struct seam_xray_announcement *a);
