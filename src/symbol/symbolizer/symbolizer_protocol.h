/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_protocol.h - requests to the sandboxed process, and its side
 *
 * For symbolizer*.c only.  A request ends with SEAM_SYMBOLIZER_DONE; before
 * that the process may request files, which its parent opens.
 */
#ifndef SEAM_SYMBOLIZER_PROTOCOL_H
#define SEAM_SYMBOLIZER_PROTOCOL_H

#include "base/strings.h"
#include "symbol/sandbox/sandbox.h"
#include "symbol/symbolizer/symbolizer.h"

enum seam_symbolizer_kind {
	SEAM_SYMBOLIZER_MODULE = 1,	/* -> DONE: id, problem */
	SEAM_SYMBOLIZER_RESOLVE,	/* -> DONE: a result for each offset */
	SEAM_SYMBOLIZER_NAMES,		/* -> DONE: a name for each address */
	SEAM_SYMBOLIZER_MAP,		/* -> DONE: error, functions */
	SEAM_SYMBOLIZER_CODE,		/* -> DONE: error, machine, bytes */
	SEAM_SYMBOLIZER_OPEN,	/* -> DONE: error, descriptor or bytes */
	SEAM_SYMBOLIZER_DISASSEMBLE,	/* -> DONE: instructions, error */
	SEAM_SYMBOLIZER_KERNEL_CODE,	/* -> DONE: error, answer, bytes */
	SEAM_SYMBOLIZER_DONE,
	SEAM_SYMBOLIZER_FILE,	/* to the parent -> FILE with a descriptor */
	SEAM_SYMBOLIZER_DOWNLOAD,	/* the same, from debuginfod */
};

/* Of the result for an offset. */
enum seam_symbolizer_flag {
	SEAM_SYMBOLIZER_MAPPED = 1,
	SEAM_SYMBOLIZER_BEFORE_TRAMPOLINE = 2,
};

/* Of a location. */
enum seam_symbolizer_location_flag {
	SEAM_SYMBOLIZER_INLINED = 1,
	SEAM_SYMBOLIZER_NAMED = 2,
	SEAM_SYMBOLIZER_HAS_FILE = 4,
};

enum {
	SEAM_SYMBOLIZER_LOCATIONS = 256, /* of an offset, at most */
	SEAM_SYMBOLIZER_BATCH = 1024,	/* places of a request, at most */
	SEAM_SYMBOLIZER_PATHS = 1024,	/* of a kernel's files, at most */
};

/* Both sides send and receive a machine; they are in symbolizer.c. */
void seam_symbolizer_put_machine(struct seam_ipc *ipc,
				 const struct seam_machine *machine);
void seam_symbolizer_take_machine(struct seam_cursor *body,
				  struct seam_machine *machine);

/*
 * The sandboxed side, symbolizer_server.c: serve requests until the parent
 * closes.  @context: a struct seam_symbols_options.
 */
void seam_symbolizer_serve(struct seam_ipc *ipc, void *context);

#endif /* SEAM_SYMBOLIZER_PROTOCOL_H */
