/* SPDX-License-Identifier: MIT */
/*
 * remote.h - modules that are read by a process without rights
 *
 * One child (sandbox.h) reads the files of one struct seam_symbols.  A
 * module's symbols come over in one message and are searched here; source
 * lines and inlined calls are asked for by address, code by place.
 *
 * When the child dies, the file that it was reading is not read again, and
 * the next question starts another child, which reads again what it needs.
 *
 * Threads: one at a time.
 */
#ifndef SEAM_REMOTE_H
#define SEAM_REMOTE_H

#include "base/index.h"
#include "symbol/bounds.h"
#include "symbol/elf_file.h"
#include "symbol/symbols.h"
#include "symbol/symtab.h"

struct seam_remote;

struct seam_remote_answer {
	uint64_t addr;
	size_t first, n;		/* of locations */
	size_t cap;			/* it was asked for with */
};

/* What is known of a module here.  Zeroed: not asked yet. */
struct seam_remote_module {
	const struct seam_module *file;	/* borrowed */
	unsigned int child;	/* which child knows it; 0: none */
	uint32_t id;		/* its number there */
	bool has_dwarf;
	int missing;		/* see seam_symbols_missing() */
	void *bytes;		/* the answer that names of symbols are in */
	char lost[160];		/* why its reader died; "": it did not */
	SEAM_ARRAY(uint64_t) expected;	/* offsets, not asked for yet */
	/* answers that came before they were asked for */
	SEAM_ARRAY(struct seam_remote_answer) answers;
	SEAM_ARRAY(struct seam_location) locations;
	struct seam_index index;	/* of answers, by address */
};

/*
 * Start the first child, before anything of strangers is read: what it
 * would inherit is little then.  NULL when memory ran out; when no child can
 * be started, each module's problem says so.
 */
struct seam_remote *seam_remote_new(const struct seam_symbols_options *options);
void seam_remote_free(struct seam_remote *remote);

/*
 * Read @module: symbols, sorted, into @table, their names in @module, where
 * the file is mapped into @segments; what went wrong into @problem, which has
 * SEAM_ERR_TEXT bytes.
 */
void seam_remote_open(struct seam_remote *remote,
		      struct seam_remote_module *module,
		      struct seam_symtab *table,
		      struct seam_segments *segments, char *problem);

/* @offset of the file will be asked for. */
void seam_remote_expect(struct seam_remote_module *module, uint64_t offset);

/* Free what @module holds. */
void seam_remote_forget(struct seam_remote_module *module);

/*
 * As seam_dwarf_resolve() of @module, which is mapped as @segments say; what
 * was found missing on the way, or that the child died, into @problem if that
 * is "".  Cost: two messages, some 20 us, which a thousand expected addresses
 * share.
 */
size_t seam_remote_resolve(struct seam_remote *remote,
			   struct seam_remote_module *module, uint64_t addr,
			   const struct seam_segments *segments,
			   struct seam_location *out, size_t cap,
			   char *problem);

/* Fill @bounds as seam_bounds_read() of @module's file.  0 or -ENOMEM. */
int seam_remote_bounds(struct seam_remote *remote,
		       struct seam_remote_module *module,
		       struct seam_bounds *bounds);

/* As seam_symbols_code(). */
int seam_remote_code(struct seam_remote *remote,
		     struct seam_remote_module *module, uint64_t offset,
		     uint8_t *buf, size_t size, struct seam_machine *machine,
		     struct seam_err *err);

/* What protection the child is without; NULL: none. */
const char *seam_remote_missing(const struct seam_remote *remote);

/* -- for the child (remote_serve.c) ------------------------------------- */

enum seam_remote_kind {
	SEAM_REMOTE_MODULE = 1,	/* -> DONE: id, dwarf, problem, tables */
	SEAM_REMOTE_RESOLVE,	/* -> DONE: locations */
	SEAM_REMOTE_CODE,	/* -> DONE: error, machine, bytes */
	SEAM_REMOTE_BOUNDS,	/* -> DONE: bounds, Go's table */
	SEAM_REMOTE_DONE,
	SEAM_REMOTE_FILE,	/* from the child -> FILE with a descriptor */
	SEAM_REMOTE_DOWNLOAD,	/* the same for a file of a server's */
};

struct seam_channel;

/* A symbol as it goes over: its name is an offset in the names. */
struct seam_remote_symbol {
	uint64_t start, end, limit;
	uint32_t flags, name;
};

enum {
	SEAM_REMOTE_LOCATIONS = 256,	/* at most, of an address */
	SEAM_REMOTE_BATCH = 1024,	/* addresses of a question, at most */
};

/* Answer until the parent closes.  @context: struct seam_symbols_options. */
void seam_remote_serve(struct seam_channel *channel, void *context);

#endif /* SEAM_REMOTE_H */
