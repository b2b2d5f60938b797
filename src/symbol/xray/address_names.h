/* SPDX-License-Identifier: MIT */
/*
 * address_names.h - names of the functions that begin at given addresses
 *
 * For programs whose file is open and whose functions are known by address: a
 * recorder's.  The file's symbols are read by a sandboxed process (sandbox.h);
 * all that it replies is a text for each address.
 *
 *	seam_address_names_start(&names, err);		before other threads
 *	seam_address_names_of(&names, fd, addresses, n, take, context);
 *	seam_address_names_end(&names);
 *
 * A process that a file has killed is not started again: later files have no
 * names.  Threads: one at a time.
 */
#ifndef SEAM_ADDRESS_NAMES_H
#define SEAM_ADDRESS_NAMES_H

#include "symbol/sandbox/sandbox.h"

/* Zeroed is valid: no process runs. */
struct seam_address_names {
	struct seam_sandbox sandbox;
	bool is_running;
};

/* Start the process.  Not while other threads run. */
int seam_address_names_start(struct seam_address_names *names,
			      struct seam_err *err);

/*
 * Call @take for each of @n @addresses, as linked, of the ELF file @fd, in
 * order: with the name as 'llvm-xray' shows it, demangled, or "" where no
 * function of the symbol tables is there.  The name is valid for the call, and
 * not trusted.  0; or -errno with the reason: -EIO when the process died.
 */
int seam_address_names_of(struct seam_address_names *names, int fd,
			   const uint64_t *addresses, size_t n,
			   void (*take)(void *context, size_t i,
					const char *name),
			   void *context, struct seam_err *err);

void seam_address_names_end(struct seam_address_names *names);

#endif /* SEAM_ADDRESS_NAMES_H */
