/* SPDX-License-Identifier: MIT */
/*
 * code_space.h - the code of a recording, as a walk over a stack needs it
 *
 * Joins what was mapped (spaces.h) and the code of JITs (jit_code.h) at the
 * time of a sample with the call frame information of files and of JITDUMP's
 * UNWINDING_INFO records.  JIT code has precedence, as in resolver.h.
 *
 * A walk that comes to a file that was not opened yet, or needs its debug file,
 * ends there: .needed is its module.  The walk is repeated when it is open.
 *
 * Threads: one; what it reads is shared by any number.
 * Cost: an address that was looked up before takes one probe of a table.
 */
#ifndef SEAM_CODE_SPACE_H
#define SEAM_CODE_SPACE_H

#include "model/perf/spaces.h"
#include "model/profile/profile.h"
#include "symbol/elf/cfi_file.h"
#include "symbol/jit/jit_code.h"
#include "symbol/symbols.h"
#include "unwind/compile/cfi_rows.h"
#include "unwind/compile/code_rows.h"
#include "unwind/walk/walk.h"

/* Code of more files is not read: a step by frame pointer is not checked. */
enum { SEAM_CODE_FILES_MAX_OPEN = 256 };

struct seam_code_file {
	bool is_found;			/* else no file here is the module */
	struct seam_cfi_file main;
	/* Its separate debug file, or closed: */
	struct seam_cfi_file debug;
	bool is_debug_tried;
};

/* Zeroed with profile and symbols set, it is ready. */
struct seam_code_files {
	const struct seam_profile *profile;
	struct seam_symbols *symbols;
	size_t n_open;			/* descriptors */
	/* by module of the profile; NULL: not opened yet */
	SEAM_ARRAY(struct seam_code_file *) items;
};

/* The file of @module; NULL where it was not opened yet. */
static inline const struct seam_code_file *
seam_code_files_get(const struct seam_code_files *files, uint32_t module)
{
	return module < files->items.n ? files->items.items[module] : NULL;
}

/*
 * Search and open the file of @module, or its debug file, which few addresses
 * need (@is_debug), unless that was done.  0 or -ENOMEM.
 */
int seam_code_files_open(struct seam_code_files *files, uint32_t module,
			 bool is_debug);

void seam_code_files_fini(struct seam_code_files *files);

/* Where code is. */
enum seam_code_kind {
	SEAM_CODE_NONE,			/* nothing executable is mapped */
	SEAM_CODE_ANON,			/* in memory without a file */
	SEAM_CODE_JIT,			/* of a JIT object */
	SEAM_CODE_FILE,
	SEAM_CODE_MISSING,		/* of a file that is not here */
};

/* The code at an address from one time to another. */
struct seam_code_at {
	uint64_t addr, from_ns, to_ns;
	uint32_t space;
	int32_t pid;
	uint64_t pos;			/* in the file's or JIT's numbers */
	uint32_t id;			/* module; of JIT code its object */
	uint8_t kind;			/* enum seam_code_kind */
	struct seam_unwind_code code;
};

struct seam_code_space {
	/* Borrowed; jit is indexed already, or NULL: */
	const struct seam_profile *profile;
	const struct seam_spaces *spaces;
	const struct seam_code_files *files;
	struct seam_jit_code *jit;

	/* The stack that is walked, see seam_code_space_enter(): */
	uint32_t space;
	int32_t pid;
	uint64_t time_ns;
	uint64_t jit_from_ns, jit_to_ns;	/* JIT code does not change */

	uint32_t needed;		/* a module to be opened; SEAM_NONE */
	bool is_debug_needed;		/* its debug file */
	SEAM_ARRAY(struct seam_file_rows *) rows;	/* by module */
	struct seam_unwind_code_rows jit_rows;
	SEAM_ARRAY(uint32_t) pieces;	/* of these, by JIT object, + 1; or 0 */
	struct seam_code_at *cache;	/* NULL before the first */
	int error;			/* 0 or -ENOMEM */
};

/* Look up in address space @space of process @pid at @time_ns from now on. */
void seam_code_space_enter(struct seam_code_space *code, uint32_t space,
			   int32_t pid, uint64_t time_ns);

/*
 * The code at @addr in the process and at the time of the stack; valid until
 * the next call.
 */
const struct seam_code_at *seam_code_space_at(struct seam_code_space *space,
					      uint64_t addr);

/* The same for a walk, whose context is @space. */
struct seam_unwind_space
seam_code_space_for_walk(struct seam_code_space *space);

void seam_code_space_fini(struct seam_code_space *space);

#endif /* SEAM_CODE_SPACE_H */
