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
 *	seam_address_names_of(&names, &request, err);
 *	seam_address_names_end(&names);
 *
 * A process can only be started while there are no other threads, so there
 * are some from the start: a file that kills one costs its own names.  After
 * SEAM_ADDRESS_NAMES_PROCESSES of them later files have none.
 *
 * A file may take a minute, or for ever: it may be huge, or served by the user
 * whose program it is (FUSE).  The caller can work meanwhile, and have it left
 * out.  Its process goes on with it then, and others read other files; it is
 * used again once it has replied, with the symbols that it has read.  One that
 * has not replied after SEAM_ADDRESS_NAMES_HANG_NS is ended.
 *
 * Threads: one at a time.
 */
#ifndef SEAM_ADDRESS_NAMES_H
#define SEAM_ADDRESS_NAMES_H

#include "symbol/sandbox/sandbox.h"

enum { SEAM_ADDRESS_NAMES_PROCESSES = 4 };

/* For one file: 20 s, and what a process may take that is not waited for. */
#define SEAM_ADDRESS_NAMES_FILE_NS UINT64_C(20000000000)
#define SEAM_ADDRESS_NAMES_HANG_NS UINT64_C(120000000000)

/* Zeroed is valid: no process runs. */
struct seam_address_names {
	struct seam_address_reader {
		struct seam_sandbox sandbox;
		bool is_busy;		/* with a reply that nobody wants */
		uint64_t requested_ns;	/* that, by CLOCK_MONOTONIC */
	} readers[SEAM_ADDRESS_NAMES_PROCESSES];
	size_t n;		/* that run; the last one reads */
};

struct seam_address_request {
	int fd;				/* an ELF file; borrowed */
	const uint64_t *addresses;	/* as linked */
	size_t n;
	/*
	 * Called for each address, in order: with the name as 'llvm-xray'
	 * shows it, demangled, or "" where no function of the symbol tables is
	 * there, or one of SEAM_DEMANGLE_MAX bytes or more.  The name is valid
	 * for the call, and not trusted.  False: no further names are wanted.
	 */
	bool (*take)(void *context, size_t i, const char *name);
	/*
	 * Called while nothing can be read from descriptor @fd: waits for it
	 * for some ms.  False: the names are not wanted any more.  NULL: they
	 * are, for SEAM_ADDRESS_NAMES_FILE_NS.
	 */
	bool (*goes_on)(void *context, int fd);
	void *context;			/* of both */
};

/*
 * Start the processes.  Not while other threads run.  0, also where not all of
 * them run, or -errno.  Cost: 1 ms each.
 */
int seam_address_names_start(struct seam_address_names *names,
			      struct seam_err *err);

/*
 * The names of @request.  0; or -errno with the reason: -EIO when the process
 * died, -ETIMEDOUT when the file was left out.
 */
int seam_address_names_of(struct seam_address_names *names,
			   const struct seam_address_request *request,
			   struct seam_err *err);

/*
 * From time to time: have the processes back that have replied to what was left
 * out, and end those that hang.  Cost: a poll() for each such process.
 */
void seam_address_names_collect(struct seam_address_names *names);

void seam_address_names_end(struct seam_address_names *names);

#endif /* SEAM_ADDRESS_NAMES_H */
