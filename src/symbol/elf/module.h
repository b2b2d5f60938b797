/* SPDX-License-Identifier: MIT */
/*
 * module.h - a mapped file or a kernel as recorded, and results for an address
 * in it
 *
 * A module is identified by its build id, where one was recorded: a file with
 * another build id is not it, and is not used.
 */
#pragma once

#include "base/arena.h"

enum { SEAM_BUILD_ID_MAX = 20 };	/* bytes; SHA-1, the longest in use */

/* Where files are searched, and how much of them is read. */
struct seam_symbols_options {
	const char *bundle;	/* the recording's folder; NULL: none */
	const char *const *symfs;/* roots to look under before "/" */
	size_t n_symfs;
	bool no_inline;		/* no inlined frames */
	bool no_lines;		/* no source lines, no inlined frames: fast */
	bool debuginfod;	/* query servers, not the local cache only */
};

/* How the mapped file is identified where no build id was recorded. */
enum seam_evidence {
	SEAM_EVIDENCE_PATH,	/* its path alone: a user named it */
	SEAM_EVIDENCE_INODE,	/* recorded here: inode and times, see below */
	SEAM_EVIDENCE_NONE,	/* recorded elsewhere: no file here is it */
	SEAM_EVIDENCE_CONTENTS,	/* .content_id */
};

/* A mapped file, as recorded. */
struct seam_module {
	const char *path;	/* "/usr/lib/libc.so.6", "[vdso]", "//anon" */
	const uint8_t *build_id;/* NULL when not recorded */
	size_t build_id_size;	/* at most SEAM_BUILD_ID_MAX */
	int32_t pid;		/* of a process that mapped it; for notes */
	enum seam_evidence evidence;	/* of one without a build id */
	uint64_t ino, ino_generation;	/* 0: not recorded */
	/* UTC; a file written after that is another one; 0: not known */
	uint64_t mapped_ns;
	uint64_t content_id;	/* as of build_id.h, when it was mapped */
	/* the recording that it is of; NULL: that of the options */
	const char *bundle;
};

/*
 * The kernel at record time.  Its symbols come from the bundle's
 * kernel.sym.zst, or from the running kernel when both the build id (or,
 * without one, boot id) and the address of _text are the recorded ones.
 */
struct seam_kernel {
	const char *boot_id;	/* NULL when not recorded */
	const uint8_t *build_id;
	size_t build_id_size;
	uint64_t text_addr;	/* of _text; 0 when not recorded */
};

/* The machine that instructions are for. */
struct seam_machine {
	uint32_t elf_machine;	/* EM_X86_64, ... */
	bool is_64;
	bool is_big_endian;
};

/* The file of a module, opened for its bytes.  The caller owns both. */
struct seam_module_file {
	int fd;			/* -1: the bytes are in memory */
	void *image;		/* of malloc(), @size bytes; NULL: fd */
	size_t size;
	struct seam_machine machine;
};

/* One function that an address is in.  Innermost first; the last is real. */
struct seam_location {
	/* Demangled.  NULL, in the last one only: there is no symbol. */
	const char *function;
	const char *file;	/* NULL when not known */
	uint32_t line;
	bool is_inlined;
};

/* Request for the names of functions that begin at given addresses. */
struct seam_named_addresses {
	const uint64_t *addresses;	/* as linked */
	size_t n;
	/*
	 * Called for each address that has a name, in order: the name as
	 * 'llvm-xray' shows it, demangled, with parameters; valid for the call,
	 * and not trusted.  0 or -ENOMEM, which ends the request.
	 */
	int (*take)(void *context, size_t i, const char *name);
	void *context;
};

/* Where a function's machine code is. */
struct seam_extent {
	uint64_t offset;	/* of its first byte in the file */
	uint64_t addr;		/* the same in symbols and DWARF */
	uint64_t size;		/* bytes */
};
