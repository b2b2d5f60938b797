/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.h - a sandboxed process that reads the files of modules
 *
 * One process (sandbox.h) reads the files of one struct seam_symbols.  Its
 * tables stay there; this side sends offsets, up to a thousand of one file in
 * a message, and receives names, lines and extents.  The same process reads
 * instrumentation maps, and reads and disassembles machine code.
 *
 * When the process dies, the file that it was reading is not read again.  The
 * next request starts another process, which reads again what it needs.
 *
 * Threads: one at a time.
 */
#ifndef SEAM_SYMBOLIZER_H
#define SEAM_SYMBOLIZER_H

#include "base/array.h"
#include "base/index.h"
#include "symbol/code/disassembly.h"
#include "symbol/code/vmlinux_code.h"
#include "symbol/elf/module.h"
#include "symbol/xray/xray_map.h"

struct seam_symbolizer;

enum { SEAM_SYMBOLIZER_LOST = 160 };

/* The result for one offset. */
struct seam_symbolizer_result {
	uint64_t offset;		/* in the file */
	size_t first;			/* of locations */
	uint32_t n;
	bool is_mapped;
	bool before_trampoline;	/* see seam_symbolizer_is_trampoline() */
	struct seam_extent extent;
};

/* One module on this side.  Zeroed but for file: not read yet. */
struct seam_symbolizer_module {
	const struct seam_module *file;	/* borrowed */
	unsigned int process;	/* which process has it; 0: none */
	uint32_t id;		/* its number there */
	bool is_readable;	/* it has code, and perhaps names */
	int missing;		/* see seam_symbols_missing() */
	char lost[SEAM_SYMBOLIZER_LOST]; /* why its reader died, or "" */
	char problem[SEAM_ERR_TEXT];	/* what is missing, or lost; "" */
	SEAM_ARRAY(uint64_t) expected;	/* offsets, not requested yet */
	SEAM_ARRAY(struct seam_symbolizer_result) results;
	SEAM_ARRAY(struct seam_location) locations;
	struct seam_index index;	/* of results, by offset */
};

/*
 * Start the first process, before untrusted data is read: it inherits little
 * then.  NULL when memory ran out; when no process can be started, each
 * module's problem is the reason.
 */
struct seam_symbolizer *
seam_symbolizer_new(const struct seam_symbols_options *options);
void seam_symbolizer_free(struct seam_symbolizer *symbolizer);

/* Read @module in the process, unless that was done. */
void seam_symbolizer_open(struct seam_symbolizer *symbolizer,
			  struct seam_symbolizer_module *module);

/* Request @offset of the file with the next offset that is looked up. */
void seam_symbolizer_expect(struct seam_symbolizer_module *module,
			    uint64_t offset);

/* Free what @module holds. */
void seam_symbolizer_module_fini(struct seam_symbolizer_module *module);

/*
 * As the functions of symbols.h for @offset of @module, which is open.  Cost:
 * two messages, some 20 us, which a thousand expected offsets share.
 */
size_t seam_symbolizer_resolve(struct seam_symbolizer *symbolizer,
			       struct seam_symbolizer_module *module,
			       uint64_t offset, struct seam_location *out,
			       size_t cap);
bool seam_symbolizer_extent(struct seam_symbolizer *symbolizer,
			    struct seam_symbolizer_module *module,
			    uint64_t offset, struct seam_extent *out);
/* It comes with the result for the call before @offset. */
bool seam_symbolizer_is_trampoline(struct seam_symbolizer *symbolizer,
				   struct seam_symbolizer_module *module,
				   uint64_t offset);

/*
 * The names of functions in @module, which is open; see symbols.h.  0, or
 * -ENOMEM.
 */
int seam_symbolizer_names(struct seam_symbolizer *symbolizer,
			  struct seam_symbolizer_module *module,
			  const struct seam_named_addresses *names);

/*
 * Read a map from regular file @fd, or where it is -1 from @bytes.  0, and
 * @map is the caller's; or as seam_xray_map_read(), and -EIO when the process
 * died.
 */
int seam_symbolizer_map(struct seam_symbolizer *symbolizer,
			struct seam_xray_map *map, int fd,
			struct seam_bytes bytes, struct seam_err *err);

/* As seam_symbols_code(). */
int seam_symbolizer_code(struct seam_symbolizer *symbolizer,
			 struct seam_symbolizer_module *module, uint64_t offset,
			 uint8_t *buf, size_t size,
			 struct seam_machine *machine, struct seam_err *err);

/* As seam_symbols_open(). */
int seam_symbolizer_open_file(struct seam_symbolizer *symbolizer,
			      struct seam_symbolizer_module *module,
			      bool is_debug, struct seam_module_file *file,
			      struct seam_err *err);

/* As seam_symbols_disassemble(). */
int seam_symbolizer_disassemble(struct seam_symbolizer *symbolizer,
				const struct seam_code_block *code,
				seam_instruction_add *add, void *context,
				struct seam_err *err);

/* As seam_vmlinux_code().  @symbolizer: a struct seam_symbolizer. */
int seam_symbolizer_vmlinux_code(void *symbolizer,
				 const struct seam_vmlinux_query *query,
				 uint8_t *buf, struct seam_vmlinux_answer *out,
				 struct seam_err *err);

/* Protections that the process is without; NULL: none. */
const char *
seam_symbolizer_unprotected(const struct seam_symbolizer *symbolizer);

#endif /* SEAM_SYMBOLIZER_H */
