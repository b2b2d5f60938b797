/* SPDX-License-Identifier: MIT */
/*
 * trigger_text.h - what makes a snapshot of the newest calls, as users write it
 *
 *	FUNCTION>TIME	a call of the function took longer than TIME
 *	calls:FUNCTION	the function was called
 *
 * FUNCTION is a whole name, as it is in the symbol table or demangled, or a
 * GLOB of names, as for fnmatch(3).  The last '>' is in front of TIME, so C++
 * names may have others; "calls::f" is f of the namespace "calls".
 *
 * The recorder checks these, and the program acts on them (SEAM_TRACE).
 */
#pragma once

#include "base/base.h"

enum { SEAM_TRIGGER_MAX = 16 };		/* as many as a program takes */

enum seam_trigger_kind {
	SEAM_TRIGGER_SLOW,		/* a call took longer than limit_ns */
	SEAM_TRIGGER_CALLS,		/* any call */
};

/* Why a name, of a trigger or to record, is of nothing. */
#define SEAM_TRIGGER_NO_FUNCTION					\
	"no function that can be recorded has this name: it may be "	\
	"inlined, shorter than -fxray-instruction-threshold= asks, or "	\
	"in no file that was loaded"

struct seam_trigger {
	enum seam_trigger_kind kind;
	const char *function;		/* in the text */
	size_t function_bytes;
	uint64_t limit_ns;
};

/* Parse @text, which @trigger points into.  NULL, or why it is no trigger. */
const char *seam_trigger_parse(const char *text, struct seam_trigger *trigger);
