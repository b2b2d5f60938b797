/* SPDX-License-Identifier: MIT */
/*
 * symbols.h - from an address in a file to names, files, lines, inlined calls
 *
 * One object serves a whole recording.  A module is a file that was mapped
 * (ELF, vdso) or the kernel, identified as module.h describes.
 *
 * Nothing is read until the first address of a module is looked up.  Results
 * are not cached: look each distinct address up once.
 *
 * Files are read by a sandboxed process (symbol/sandbox/sandbox.h), which is
 * started with the object.
 *
 * Threads: one at a time.  No other thread may run when an object is made, nor
 * when its process has died and is replaced.
 */
#pragma once

#include "base/err.h"
#include "symbol/code/disassembly.h"
#include "symbol/elf/module.h"
#include "symbol/xray/xray_map.h"

struct seam_symbols;

/* NULL: no memory.  Cost: a fork, 1 ms. */
struct seam_symbols *
seam_symbols_new(const struct seam_symbols_options *options);
void seam_symbols_free(struct seam_symbols *symbols);

/*
 * End the process that reads files, with the tables of all files.  The next
 * look-up starts another, which reads the file again.
 */
void seam_symbols_rest(struct seam_symbols *symbols);

/*
 * The number of a module, the same for equal path, build id and inode; of
 * several mapped_ns the earliest counts.  Everything pointed to is copied.
 * SEAM_NONE when memory ran out.
 */
uint32_t seam_symbols_module(struct seam_symbols *symbols,
			     const struct seam_module *module);
uint32_t seam_symbols_kernel(struct seam_symbols *symbols,
			     const struct seam_kernel *kernel);

/*
 * The functions at @addr of module @module: at most @cap of them into @out.
 * @addr is an offset in the file for a file, an address for the kernel.
 * Returns how many, 0 when the address has no symbol.  Strings live as long as
 * @symbols.
 *
 * Cost: the first call for a module reads its tables; after that O(log n)
 * for symbols, and the DWARF of each compilation unit once.
 */
size_t seam_symbols_resolve(struct seam_symbols *symbols, uint32_t module,
			    uint64_t addr, struct seam_location *out,
			    size_t cap);

/*
 * @addr of @module will be looked up.  The results of all expected addresses
 * come with the first.
 */
void seam_symbols_expect(struct seam_symbols *symbols, uint32_t module,
			 uint64_t addr);

/*
 * The names of the functions of a file that begin at the addresses of @names.
 * 0, also where some have none or the file cannot be read (see
 * seam_symbols_state()); or -ENOMEM.  Cost: two messages a thousand.
 */
int seam_symbols_names(struct seam_symbols *symbols, uint32_t module,
		       const struct seam_named_addresses *names);

/*
 * Read the instrumentation map in @path: a linked ELF file of 64 bits,
 * or YAML.  @left, if that is not NULL: the path was found, not named by a
 * user; the file is no symbolic link then, and has at most *@left bytes, which
 * become fewer by its size.  0, and @map is the caller's; as
 * seam_xray_map_read(); or -EIO when the process that reads it died.
 */
int seam_symbols_read_map(struct seam_symbols *symbols,
			  struct seam_xray_map *map, const char *path,
			  uint64_t *left, struct seam_err *err);

/*
 * The extent of the function at @addr of a file: of its symbol, or of its
 * range in function_ranges.h.  With neither its size is 0 and it begins at
 * @addr.  False when nothing is mapped from there.  For a kernel, offset and
 * addr are both the address.
 */
bool seam_symbols_extent(struct seam_symbols *symbols, uint32_t module,
			 uint64_t addr, struct seam_extent *out);

/*
 * Whether a signal trampoline begins at @addr of a file: then the caller is not
 * the code before it.
 */
bool seam_symbols_is_trampoline(struct seam_symbols *symbols, uint32_t module,
				uint64_t addr);

/*
 * Read @size bytes at @offset of a module's file, which is searched and
 * checked again, into @buf.  0, or -errno with the reason: there is no such
 * file, it is another one, it is cut.  For the kernel see kernel_code.h.
 */
int seam_symbols_code(struct seam_symbols *symbols, uint32_t module,
		      uint64_t offset, uint8_t *buf, size_t size,
		      struct seam_machine *machine, struct seam_err *err);

/*
 * Open the file of a module, or its separate debug file (@is_debug), which is
 * searched and checked again.  0, or -errno with the reason as above: -ENOENT
 * where there is no debug file.  What is open is the caller's.
 */
int seam_symbols_open(struct seam_symbols *symbols, uint32_t module,
		      bool is_debug, struct seam_module_file *file,
		      struct seam_err *err);

/* What has become of a module. */
struct seam_module_state {
	const char *path;	/* of its file; NULL: a kernel */
	/*
	 * 0: the file was found, or never searched; -ESTALE: another file is
	 * in its place; -EXDEV: it was recorded on another machine and cannot
	 * be identified; or why it could not be opened.
	 */
	int missing;
	/*
	 * Why there are no symbols ("file not found", "build id is 12ab.., the
	 * recording has 98fe.."), or what of them is missing ("split DWARF
	 * (.dwo files) is not read"); NULL when nothing is, or when the file
	 * was not read.
	 */
	const char *problem;
	bool is_lost;		/* the process that read it died: .problem */
};

/* False: there is no module of that number, and @state is zero. */
bool seam_symbols_state(const struct seam_symbols *symbols, uint32_t module,
			struct seam_module_state *state);

/* Which protections the process that reads is without; NULL: none. */
const char *seam_symbols_unprotected(const struct seam_symbols *symbols);

/*
 * Disassemble @code: as seam_disassembly_walk(), in a sandbox of its own.  -EIO
 * when the code killed that process.
 */
int seam_symbols_disassemble(struct seam_symbols *symbols,
			     const struct seam_code_block *code,
			     seam_instruction_add *add, void *context,
			     struct seam_err *err);
