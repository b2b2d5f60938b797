/* SPDX-License-Identifier: MIT */
/* preloaded.c - see preloaded.h */
#include "traced/interpose/preloaded.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Source: tried, valgrind 3.19 preloads vgpreload_core-PLATFORM.so. */
bool seam_preloaded_is_in_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded && strstr(preloaded, "/vgpreload_core");
}

void seam_preloaded_format(char text[SEAM_LINK_NOTE_BYTES], const char *format,
			   va_list list)
{
	int n = snprintf(text, SEAM_LINK_NOTE_BYTES, "%s (%d): ",
			 program_invocation_short_name, getpid());

	if (n >= 0 && n < SEAM_LINK_NOTE_BYTES)
		vsnprintf(text + n, (size_t)(SEAM_LINK_NOTE_BYTES - n), format,
			  list);
}
