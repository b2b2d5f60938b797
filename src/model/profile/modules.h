/* SPDX-License-Identifier: MIT */
/*
 * modules.h - the files and the JIT code that a profile's addresses are in
 *
 * A module is a mapped file, the kernel, or code without a file.  Mappings
 * turn an offset in a module into an address in a process.  With both, an
 * exporter writes the mappings of pprof (start, limit, offset, file, build
 * id) or the libs of the Firefox Profiler without reading the recording.
 */
#ifndef SEAM_MODULES_H
#define SEAM_MODULES_H

#include "base/base.h"

struct seam_profile;

enum seam_module_kind {
	SEAM_MODULE_UNKNOWN,	/* nothing is mapped: module 0 */
	SEAM_MODULE_FILE,	/* a file: ELF, or data */
	SEAM_MODULE_VDSO,
	SEAM_MODULE_ANON,	/* memory without a file */
	SEAM_MODULE_JIT,	/* code that a jitdump or perf map describes */
	SEAM_MODULE_KERNEL,	/* the kernel's text and its BPF programs */
	SEAM_MODULE_KERNEL_MODULE,
	SEAM_MODULE_GUEST,	/* a chunk of a guest's source */
};

/* Equal path, kind and build id, or inode without one, are one module. */
struct seam_profile_module {
	uint32_t path;		/* string: "/usr/lib/libc.so.6", "[vdso]" */
	uint32_t first;		/* the first module with this path */
	int32_t pid;		/* of a process that mapped it, or -1 */
	uint8_t kind;		/* enum seam_module_kind */
	/* which file is the recorded one: enum seam_evidence (symbols.h) */
	uint8_t evidence;
	uint8_t build_id_size;	/* bytes; 0: not recorded */
	uint8_t build_id[20];
	uint64_t ino, ino_generation;	/* 0: not recorded */
	uint64_t mapped_ns;	/* UTC of its first mapping; 0: not known */
	uint64_t content_id;	/* symbol/elf/build_id.h; 0: not recorded */
	uint64_t text_addr;	/* of the kernel's _text; 0: not known */
};

/* A part of a module in the memory of a process. */
struct seam_mapping {
	uint64_t start_addr, size;
	uint64_t pgoff;		/* bytes of the file before it */
	uint64_t from_ns;	/* 0: before the recording */
	uint32_t module;
	uint32_t function;	/* string: the only function in it, of a
				 * KSYMBOL record; 0: any */
	int32_t pid;		/* -1: the kernel */
	bool is_executable;	/* as it was recorded */
	bool is_used;		/* a sample has an address in it */
};

/* A piece of JIT code that has samples. */
struct seam_code_object {
	uint32_t name;		/* string: as the JIT wrote it */
	uint32_t dump;		/* string: path of the jitdump or perf map */
	uint32_t object;	/* for seam_jit_code_object() */
	int32_t pid;		/* the dump's process */
	uint64_t index;		/* in the dump: code_index; 0 of a perf map */
	uint64_t start_addr;	/* where it was loaded */
	uint64_t size;		/* bytes */
	const uint8_t *code;	/* as long as the profile; NULL: not known */
	uint64_t from_ns;	/* when it was loaded; 0: not known */
	uint64_t to_ns;		/* when other code replaced it; UINT64_MAX */
};

/*
 * The id of an equal module, added if new; path and kind must be set, @first is
 * not used.  Of equal modules the earliest mapped_ns is kept.  SEAM_NONE when
 * memory ran out.
 */
uint32_t seam_profile_module(struct seam_profile *profile,
			     const struct seam_profile_module *module);

/* The kind of module that a mapping with this file name belongs to. */
enum seam_module_kind seam_module_kind_of(const char *filename);

/* Bytes of the longest module name: those of the longest file name. */
enum { SEAM_MODULE_NAME_MAX = 255 };

/*
 * The name inside "[libc.so.6+0x1234]": libc.so.6 for "/usr/lib/libc.so.6",
 * vdso for "[vdso]", anon for "//anon".  Returns the first of @*size bytes
 * inside @path.
 */
const char *seam_module_name(const char *path, size_t *size);

#endif /* SEAM_MODULES_H */
