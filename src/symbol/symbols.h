/* SPDX-License-Identifier: MIT */
/*
 * symbols.h - from an address in a file to names, files, lines, inlined calls
 *
 * One object answers for a whole recording.  A module is a file that was
 * mapped (ELF, vdso) or the kernel.  A module is known by what the recording
 * says of it, above all its build id: a file found today that does not carry
 * the recorded build id is not it, and is not used.
 *
 * Nothing is read until the first address of a module is asked for.  The
 * caller asks once for each distinct address; this side does not cache
 * answers.
 *
 * Threads: different modules may be resolved from different threads at the
 * same time, one module from one thread at a time; seam_symbols_module() from
 * one thread and not during a resolve.
 */
#ifndef SEAM_SYMBOLS_H
#define SEAM_SYMBOLS_H

#include "base/base.h"
#include "base/err.h"

struct seam_symbols;

struct seam_symbols_options {
	const char *bundle;	/* the recording's folder; NULL: none */
	const char *const *symfs;/* roots to look under before "/" */
	size_t n_symfs;
	bool no_inline;		/* no inlined frames */
	bool no_lines;		/* no source lines and no inlined frames: fast */
	bool debuginfod;	/* ask servers; otherwise only the local cache */
	/*
	 * Files are read by a child without rights (sandbox.h), which is
	 * started at once.  Then one thread at a time for all modules, and
	 * none other running when symbols are made.
	 */
	bool isolated;
};

/* What tells the mapped file from another where no build id was recorded. */
enum seam_evidence {
	SEAM_EVIDENCE_PATH,	/* its path alone: a user named it */
	SEAM_EVIDENCE_INODE,	/* recorded here: inode and times, see below */
	SEAM_EVIDENCE_NONE,	/* recorded elsewhere: no file here is it */
};

/* What a recording knows of a mapped file. */
struct seam_module {
	const char *path;	/* "/usr/lib/libc.so.6", "[vdso]", "//anon" */
	const uint8_t *build_id;/* NULL when not recorded */
	size_t build_id_size;	/* at most 20 */
	int32_t pid;		/* of a process that mapped it; for notes */
	enum seam_evidence evidence;	/* of one without a build id */
	uint64_t ino, ino_generation;	/* 0: not recorded */
	uint64_t mapped_ns;	/* UTC; changed later, it is another; 0: not known */
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
	uint64_t text_addr;	/* of _text at record time; 0 when not recorded */
};

/* One function that an address is in.  Innermost first; the last is real. */
struct seam_location {
	/* Demangled.  NULL, in the last one only: there is no symbol. */
	const char *function;
	const char *file;	/* NULL when not known */
	uint32_t line;
	bool is_inlined;
};

/* Both strings of a location live as long as the symbols object. */

struct seam_symbols *seam_symbols_new(const struct seam_symbols_options *options);
void seam_symbols_free(struct seam_symbols *symbols);

/*
 * The number of a module, the same for equal path, build id and inode; of
 * several times the earliest counts.  Everything pointed to is copied.
 * SEAM_NONE when memory ran out.
 */
uint32_t seam_symbols_module(struct seam_symbols *symbols,
			     const struct seam_module *module);
uint32_t seam_symbols_kernel(struct seam_symbols *symbols,
			     const struct seam_kernel *kernel);

/*
 * The functions at @addr of module @module: at most @cap of them into @out.
 * @addr is an offset in the file for a file, an address for the kernel.
 * Returns how many, 0 when the address has no symbol.
 *
 * Cost: the first call for a module reads its tables; after that O(log n)
 * for symbols, and the DWARF of each compilation unit once.
 */
size_t seam_symbols_resolve(struct seam_symbols *symbols, uint32_t module,
			    uint64_t addr, struct seam_location *out,
			    size_t cap);

/*
 * Of an isolated object: @addr of @module will be asked for with the largest
 * @cap that is in use.  Answers to all that is expected come with the answer
 * to the first; for others the call does nothing.
 */
void seam_symbols_expect(struct seam_symbols *symbols, uint32_t module,
			 uint64_t addr);
bool seam_symbols_expects(const struct seam_symbols *symbols);

/* Where a function's machine code is. */
struct seam_extent {
	uint64_t offset;	/* of its first byte in the file */
	uint64_t addr;		/* what symbols and DWARF call that */
	uint64_t size;		/* bytes */
};

/*
 * The extent of the function at @addr of a file: of its symbol, or where it
 * has none as bounds.h has it.  Where neither knows a function its size is 0,
 * and its place that of @addr.  False when nothing is mapped from
 * there.  Of a kernel's, offset and addr are both its address.
 */
bool seam_symbols_extent(struct seam_symbols *symbols, uint32_t module,
			 uint64_t addr, struct seam_extent *out);

/*
 * Whether @addr of a file is where the kernel lets a signal handler return to,
 * and no return address: the caller is not the code before it.
 */
bool seam_symbols_is_trampoline(struct seam_symbols *symbols, uint32_t module,
				uint64_t addr);

/* What instructions are for. */
struct seam_machine {
	uint32_t elf_machine;	/* EM_X86_64, ... */
	bool is_64;
	bool is_big_endian;
};

/*
 * Read @size bytes at @offset of a module's file, which is found and judged
 * anew, into @buf.  0, or -errno with the reason: there is no such file, it is
 * another one, it is cut.  For the kernel, where its code may be found and
 * what would help is in symbol/kernel/kernel_code.h.
 */
int seam_symbols_code(struct seam_symbols *symbols, uint32_t module,
		      uint64_t offset, uint8_t *buf, size_t size,
		      struct seam_machine *machine, struct seam_err *err);

/*
 * 0 when the file of a module was found, or was never asked for; -ESTALE when
 * there is another one in its place, -EXDEV when it was recorded on another
 * machine and cannot be told from others, or why it could not be opened.
 */
int seam_symbols_missing(const struct seam_symbols *symbols, uint32_t module);

/*
 * Why a module has no symbols ("file not found", "build id is 12ab.., the
 * recording has 98fe.."), or what of them is missing ("split DWARF (.dwo
 * files) is not read"); NULL when nothing is, or when it was never asked.
 */
const char *seam_symbols_problem(const struct seam_symbols *symbols,
				 uint32_t module);

/*
 * Of an isolated object: why the process that read @module died, NULL when it
 * did not; and what protection that process is without, NULL when none.
 */
const char *seam_symbols_lost(const struct seam_symbols *symbols,
			      uint32_t module);
const char *seam_symbols_unprotected(const struct seam_symbols *symbols);

/* The number of modules, and the path of one; NULL for a kernel. */
size_t seam_symbols_n_modules(const struct seam_symbols *symbols);
const char *seam_symbols_path(const struct seam_symbols *symbols,
			      uint32_t module);

#endif /* SEAM_SYMBOLS_H */
