/* SPDX-License-Identifier: MIT */
/*
 * address_names.h - names of the functions that begin at given addresses
 *
 * For programs whose file is open and whose functions are known by address: a
 * recorder's.  The file's symbols are read by a sandboxed process (sandbox.h);
 * all that it replies is a text for each address.  It keeps the symbols of the
 * last 8 files.
 *
 *	seam_address_names_start(&names, err);		before other threads
 *	seam_address_names_of(&names, fd, addresses, n, take, context);
 *	seam_address_names_end(&names);
 *
 * A process can only be started while there are no other threads, so there
 * are some from the start: a file that kills one costs its own names.  After
 * SEAM_ADDRESS_NAMES_PROCESSES of them later files have none.  Threads: one at
 * a time.
 */
#ifndef SEAM_ADDRESS_NAMES_H
#define SEAM_ADDRESS_NAMES_H

#include "symbol/sandbox/sandbox.h"

enum { SEAM_ADDRESS_NAMES_PROCESSES = 4 };

/* Zeroed is valid: no process runs. */
struct seam_address_names {
	struct seam_sandbox sandboxes[SEAM_ADDRESS_NAMES_PROCESSES];
	size_t n;		/* that run; the last one reads */
};

/*
 * Start the processes.  Not while other threads run.  0, also where not all of
 * them run, or -errno.  Cost: 1 ms each.
 */
int seam_address_names_start(struct seam_address_names *names,
			      struct seam_err *err);

/*
 * Call @take for each of @n @addresses, as linked, of the ELF file @fd, in
 * order: with the name as 'llvm-xray' shows it, demangled, or "" where no
 * function of the symbol tables is there, or one of SEAM_DEMANGLE_MAX bytes or
 * more.  The name is valid for the call, and not trusted.  False of @take: no
 * further names are wanted.  0; or -errno with the reason: -EIO when the
 * process died.
 */
int seam_address_names_of(struct seam_address_names *names, int fd,
			   const uint64_t *addresses, size_t n,
			   bool (*take)(void *context, size_t i,
					const char *name),
			   void *context, struct seam_err *err);

void seam_address_names_end(struct seam_address_names *names);

#endif /* SEAM_ADDRESS_NAMES_H */
