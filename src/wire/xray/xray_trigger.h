/* SPDX-License-Identifier: MIT */
/*
 * xray_trigger.h - a program's trigger, as it is sent to the recorder
 *
 * A SAMPLE record of this payload, in the ring of the thread's calls.  Both
 * sides are of the same machine; the recorder trusts none of it.
 */
#ifndef SEAM_XRAY_TRIGGER_H
#define SEAM_XRAY_TRIGGER_H

#include <stdint.h>

enum { SEAM_XRAY_TRIGGER = 4 };		/* beside the kinds of xray_functions.h */

struct seam_xray_trigger {
	uint32_t kind;		/* SEAM_XRAY_TRIGGER */
	uint32_t trigger;	/* index in the options */
	uint32_t tid;
	uint32_t number;	/* 1, 2, ... in this process */
	uint64_t tsc;		/* when it was found */
	uint64_t duration;	/* ticks, of a call; else 0 */
	uint32_t function;	/* 0: a signal */
	uint32_t signal;	/* 0: a call */
};

_Static_assert(sizeof(struct seam_xray_trigger) == 40, "without padding");

#endif /* SEAM_XRAY_TRIGGER_H */
