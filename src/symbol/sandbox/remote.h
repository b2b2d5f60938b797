/* SPDX-License-Identifier: MIT */
/*
 * remote.h - modules that are read by a process without rights
 *
 * One child (sandbox.h) reads the files of one struct seam_symbols.  Its
 * tables stay there: it is asked for places of a file, all that are expected
 * of one file a thousand at a time, and answers with names, lines and
 * extents.  Instructions are decoded, and code is read, by the same child.
 *
 * When the child dies, the file that it was reading is not read again, and
 * the next question starts another child, which reads again what it needs.
 *
 * Threads: one at a time.
 */
#ifndef SEAM_REMOTE_H
#define SEAM_REMOTE_H

#include "base/array.h"
#include "base/cursor.h"
#include "base/index.h"
#include "symbol/disassembly.h"
#include "symbol/kernel/kernel_file_code.h"
#include "symbol/symbols.h"

struct seam_remote;

enum { SEAM_REMOTE_LOST = 160 };

/* What the child said of a place. */
struct seam_remote_answer {
	uint64_t offset;		/* in the file */
	size_t first;			/* of locations */
	uint32_t n, cap;		/* cap: that it was asked for with */
	bool has_extent;		/* extent is valid: it has no name */
	bool is_mapped;
	bool before_trampoline;		/* see seam_remote_is_trampoline() */
	struct seam_extent extent;
};

/* What is known of a module here.  Zeroed: not asked yet. */
struct seam_remote_module {
	const struct seam_module *file;	/* borrowed */
	unsigned int child;	/* which child knows it; 0: none */
	uint32_t id;		/* its number there */
	uint32_t cap;		/* the largest asked for */
	bool is_readable;	/* it has code, and perhaps names */
	int missing;		/* see seam_symbols_missing() */
	char lost[SEAM_REMOTE_LOST];	/* why its reader died; "": not */
	SEAM_ARRAY(uint64_t) expected;	/* offsets, not asked for yet */
	SEAM_ARRAY(struct seam_remote_answer) answers;
	SEAM_ARRAY(struct seam_location) locations;
	struct seam_index index;	/* of answers, by offset */
};

/*
 * Start the first child, before anything of strangers is read: what it
 * would inherit is little then.  NULL when memory ran out; when no child can
 * be started, each module's problem says so.
 */
struct seam_remote *seam_remote_new(const struct seam_symbols_options *options);
void seam_remote_free(struct seam_remote *remote);

/*
 * Have @module read; what went wrong into @problem, which has SEAM_ERR_TEXT
 * bytes.
 */
void seam_remote_open(struct seam_remote *remote,
		      struct seam_remote_module *module, char *problem);

/* @offset of the file will be asked for. */
void seam_remote_expect(struct seam_remote_module *module, uint64_t offset);

/* Free what @module holds. */
void seam_remote_forget(struct seam_remote_module *module);

/*
 * As the functions of symbols.h for @offset of @module, which is open; what
 * was found missing on the way, or that the child died, into @problem if that
 * is "".  Cost: two messages, some 20 us, which a thousand expected offsets
 * share.
 */
size_t seam_remote_resolve(struct seam_remote *remote,
			   struct seam_remote_module *module, uint64_t offset,
			   struct seam_location *out, size_t cap,
			   char *problem);
bool seam_remote_extent(struct seam_remote *remote,
			struct seam_remote_module *module, uint64_t offset,
			struct seam_extent *out, char *problem);
/* It comes with what is said of the call before it. */
bool seam_remote_is_trampoline(struct seam_remote *remote,
			       struct seam_remote_module *module,
			       uint64_t offset, char *problem);

/* As seam_symbols_code(). */
int seam_remote_code(struct seam_remote *remote,
		     struct seam_remote_module *module, uint64_t offset,
		     uint8_t *buf, size_t size, struct seam_machine *machine,
		     struct seam_err *err);

/* As seam_symbols_disassemble(). */
int seam_remote_disassemble(struct seam_remote *remote,
			    const struct seam_code_block *code,
			    seam_instruction_add *add, void *context,
			    struct seam_err *err);

/* As seam_kernel_file_code(). */
int seam_remote_kernel_code(struct seam_remote *remote,
			    const struct seam_kernel_file_query *query,
			    uint8_t *buf, struct seam_kernel_file_answer *out,
			    struct seam_err *err);

/* What protection the child is without; NULL: none. */
const char *seam_remote_missing(const struct seam_remote *remote);

/* -- for the child (remote_serve.c) ------------------------------------- */

enum seam_remote_kind {
	SEAM_REMOTE_MODULE = 1,	/* -> DONE: id, problem */
	SEAM_REMOTE_RESOLVE,	/* -> DONE: an answer for each offset */
	SEAM_REMOTE_EXTENT,	/* -> DONE: an extent */
	SEAM_REMOTE_CODE,	/* -> DONE: error, machine, bytes */
	SEAM_REMOTE_DISASSEMBLE,/* -> DONE: instructions, error */
	SEAM_REMOTE_KERNEL_CODE,/* -> DONE: error, answer, bytes */
	SEAM_REMOTE_DONE,
	SEAM_REMOTE_FILE,	/* from the child -> FILE with a descriptor */
	SEAM_REMOTE_DOWNLOAD,	/* the same for a file of a server's */
};

struct seam_channel;

/* For messages. */
void seam_remote_put_machine(struct seam_channel *channel,
			     const struct seam_machine *machine);
void seam_remote_take_machine(struct seam_cursor *body,
			      struct seam_machine *machine);

/* Of the answer for an offset. */
enum seam_remote_flag {
	SEAM_REMOTE_MAPPED = 1,
	SEAM_REMOTE_BEFORE_TRAMPOLINE = 2,
	SEAM_REMOTE_HAS_EXTENT = 4,
};

/* Of a location. */
enum seam_remote_location_flag {
	SEAM_REMOTE_INLINED = 1,
	SEAM_REMOTE_NAMED = 2,
	SEAM_REMOTE_HAS_FILE = 4,
};

enum {
	SEAM_REMOTE_LOCATIONS = 256,	/* at most, of an offset */
	SEAM_REMOTE_BATCH = 1024,	/* offsets of a question, at most */
	SEAM_REMOTE_PATHS = 1024,	/* of a kernel's files, at most */
};

/* Answer until the parent closes.  @context: struct seam_symbols_options. */
void seam_remote_serve(struct seam_channel *channel, void *context);

#endif /* SEAM_REMOTE_H */
