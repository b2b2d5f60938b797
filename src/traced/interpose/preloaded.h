/* SPDX-License-Identifier: MIT */
/*
 * preloaded.h - what the libraries have in common that 'seam record' preloads
 */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "ring/link/link.h"

/*
 * Whether valgrind simulates the CPU of this process: stacks and times would be
 * valgrind's, and valgrind prints a warning for each address that we have the
 * kernel probe.  Source: tried, 3.19 preloads vgpreload_core-PLATFORM.so.
 */
static inline bool seam_preloaded_is_in_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded && strstr(preloaded, "/vgpreload_core");
}

/*
 * Make a line for the recorder's user, "NAME (PID): " and @format, cut where
 * the line does not fit.  Not in signal handlers.
 */
__attribute__((format(printf, 2, 0)))
static inline void
seam_preloaded_format(char text[SEAM_LINK_NOTE_BYTES], const char *format,
		      va_list list)
{
	int n = snprintf(text, SEAM_LINK_NOTE_BYTES, "%s (%d): ",
			 program_invocation_short_name, getpid());

	if (n >= 0 && n < SEAM_LINK_NOTE_BYTES)
		vsnprintf(text + n, (size_t)(SEAM_LINK_NOTE_BYTES - n), format,
			  list);
}
