/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.h - requests of symbols.c to the sandboxed process
 *
 * A reply is SEAM_SYMBOLIZER_DONE, or SEAM_SYMBOLIZER_FAILED with an error.
 * Before that the process may request files, which its parent opens.  The
 * parent sends each module once, and its number then.
 */
#pragma once

#include "symbol/elf/module.h"
#include "symbol/sandbox/sandbox.h"

enum seam_symbolizer_kind {
	SEAM_SYMBOLIZER_MODULE = 1,	/* -> id, has code, missing, problem */
	SEAM_SYMBOLIZER_RESOLVE,	/* -> a result for each offset */
	SEAM_SYMBOLIZER_NAMES,		/* -> a name for each address */
	SEAM_SYMBOLIZER_MAP,		/* -> functions */
	SEAM_SYMBOLIZER_OPEN,		/* -> machine; descriptor or bytes */
	SEAM_SYMBOLIZER_DISASSEMBLE,	/* -> instructions */
	SEAM_SYMBOLIZER_KERNEL_CODE,	/* -> machine, bytes */
	SEAM_SYMBOLIZER_DONE,
	SEAM_SYMBOLIZER_FAILED,
	SEAM_SYMBOLIZER_FILE,	/* to the parent -> FILE with a descriptor */
	SEAM_SYMBOLIZER_DOWNLOAD,	/* the same, from debuginfod */
};

/* Of the result for an offset. */
enum seam_symbolizer_flag {
	SEAM_SYMBOLIZER_MAPPED = 1,
	SEAM_SYMBOLIZER_BEFORE_TRAMPOLINE = 2,
};

enum {
	SEAM_SYMBOLIZER_LOCATIONS = 256, /* of an offset, at most */
};

/* A machine in a message. */
static inline void
seam_symbolizer_put_machine(struct seam_ipc *ipc,
			    const struct seam_machine *machine)
{
	seam_ipc_put_u32(ipc, machine->elf_machine);
	seam_ipc_put_u32(ipc, machine->is_64 |
			 (machine->is_big_endian ? 2u : 0));
}

static inline void
seam_symbolizer_take_machine(struct seam_cursor *body,
			     struct seam_machine *machine)
{
	uint32_t number = seam_cursor_u32(body);
	uint32_t flags = seam_cursor_u32(body);

	*machine = (struct seam_machine) {
		.elf_machine = number,
		.is_64 = flags & 1, .is_big_endian = flags & 2,
	};
}

/*
 * In the sandboxed process: serve requests until the parent closes.  @context:
 * a struct seam_symbols_options.
 */
void seam_symbolizer_serve(struct seam_ipc *ipc, void *context);
