/* SPDX-License-Identifier: MIT */
/*
 * preloaded.h - what the libraries have in common that 'seam record' preloads
 */
#ifndef SEAM_PRELOADED_H
#define SEAM_PRELOADED_H

#include <stdarg.h>

#include "ring/link/link.h"

/*
 * Whether valgrind simulates the CPU of this process: stacks and times would be
 * valgrind's, and it prints a warning for each address that we have the kernel
 * probe.
 */
bool seam_preloaded_is_in_valgrind(void);

/*
 * Make a line for the recorder's user, "NAME (PID): " and what @format gives,
 * cut where it does not fit.  Not in signal handlers.
 */
void seam_preloaded_format(char text[SEAM_LINK_NOTE_BYTES], const char *format,
			   va_list list);

#endif /* SEAM_PRELOADED_H */
