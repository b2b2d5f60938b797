/* SPDX-License-Identifier: MIT */
/*
 * writer.h - inside struct seam_jitdump
 *
 * api.c holds the public functions and records.c lays records out.  From there
 * they go to a file: dump_file.c creates it and maps its marker, output.c
 * buffers records and writes them.  Or they go to a recorder: stream.c queues
 * them for a ring.  entries.c is the table of all code, inherit.c gives a
 * forked child its own output with the code that is loaded.
 *
 * All members but the lock and the counters belong to the thread that holds
 * the lock.  Another thread may fork while it does, and it may die; so each
 * store leaves memory in a state that a child, or the next thread, can use:
 * what refers to data is stored after the data (seam_writer_barrier()).
 */
#ifndef SEAM_TRACED_WRITER_H
#define SEAM_TRACED_WRITER_H

#include <seam/jitdump.h>

#include "base/base.h"
#include "traced/jit/lock.h"
#include "traced/jit/stream.h"

enum {
	SEAM_WRITER_BUFFER_BYTES = 64 * 1024,
	SEAM_WRITER_PATH_BYTES = 4096,
};

struct seam_writer_identity {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
};

/* A file that is appended to. */
struct seam_writer_file {
	int fd;			/* -1: none, or closed after an error */
	struct seam_writer_identity identity;	/* when it was opened */
	uint64_t size;		/* bytes, all of them whole records */
	void *marker;		/* the mapped page, or NULL */
	char path[SEAM_WRITER_PATH_BYTES];
};

/* Records that are not in the file yet. */
struct seam_writer_buffer {
	uint8_t *bytes;
	size_t used, cap;
	uint64_t n;		/* pieces of code and moves among them */
	uint64_t pos;		/* of the first byte, in the file */
};

/*
 * A piece of code, and its records.  Without records (they were lost) no child
 * inherits it, but it can be moved and unloaded.
 */
struct seam_writer_entry {
	union {
		uint64_t pos;			/* in the file */
		struct seam_stream_block *block;	/* of a stream */
	} records;
	uint64_t addr;			/* current, in this process */
	uint64_t code_size;
	uint32_t size;			/* bytes of records; 0: none */
	bool is_loaded;			/* and not unloaded */
};

/* Entry i has id i + 1. */
struct seam_writer_entries {
	struct seam_writer_entry *items;
	size_t n, cap;
};

/*
 * The code of one process and the file that has it; without a file for a
 * stream.  Positions of entries are in that file, also of bytes that are
 * still in the buffer.
 */
struct seam_writer_output {
	int32_t pid;
	struct seam_writer_file file;
	struct seam_writer_buffer buffer;
	struct seam_writer_entries entries;
};

struct seam_jitdump {
	struct seam_lock lock;
	_Atomic uint64_t n_lost;	/* any thread adds and reads */
	enum seam_jitdump_format format;
	bool is_buffered;
	struct seam_writer_output *out;	/* one of outputs */
	/* In a child while it copies the code from there: the other one. */
	struct seam_writer_output *parent;
	struct seam_writer_output outputs[2];
	struct seam_writer_stream stream;
	char folder[SEAM_WRITER_PATH_BYTES];	/* of the file */
};

/*
 * Stores before the barrier are in the memory of a child that has one of the
 * stores after it.
 */
static inline void seam_writer_barrier(void)
{
	/* release: pairs with the copy of memory that fork() is */
	atomic_thread_fence(memory_order_release);
}

/* ---- entries.c ---- */

/* @size zeroed bytes in whole pages, not from malloc; or NULL. */
void *seam_writer_map(size_t size);
void seam_writer_unmap(void *p, size_t size);

/*
 * Replace the mapped array *@array, which may be NULL, by a larger copy.  False
 * without memory, and then it is unchanged.  At any moment it is either of
 * them; after mremap() a child would have neither for a moment.
 */
bool seam_writer_grow(void *array, size_t size, size_t new_size);

/* Add code at @addr, without records.  Returns its id; 0 without memory. */
uint64_t seam_writer_add_entry(struct seam_writer_entries *entries,
			       uint64_t addr, uint64_t code_size);

/* The entry of @id, or NULL when that is not loaded. */
struct seam_writer_entry *seam_writer_find_entry(
		const struct seam_writer_entries *entries, uint64_t id);

/* Entries whose records are at @pos of the file or later have none any more. */
void seam_writer_drop_records(struct seam_writer_entries *entries,
			      uint64_t pos);

/* ---- dump_file.c ---- */

/*
 * Create @file of process @pid in @folder, empty, locked and with its marker
 * mapped.  Returns 0, or -errno and no file; -EEXIST: it is in use.
 */
int seam_writer_create_file(struct seam_writer_file *file,
			    enum seam_jitdump_format format, int32_t pid,
			    const char *folder);

/*
 * The same for @dump, in @folder or, if NULL, in the first folder that
 * works; see jitdump.h.  Which one it was is in dump->folder.
 */
int seam_writer_choose_file(struct seam_jitdump *dump, const char *folder);

/* Close @file and unmap its marker; the file itself stays. */
void seam_writer_close_file(struct seam_writer_file *file);

/* Whether the descriptor still is the file that was opened. */
bool seam_writer_owns_fd(const struct seam_writer_file *file);

/* ---- output.c ---- */

/*
 * Room for @size bytes of records, after those that are buffered or queued;
 * NULL with *@error set.  Nothing changes until they are committed.
 */
uint8_t *seam_writer_reserve(struct seam_jitdump *dump, size_t size,
			     int *error);

/*
 * The @size bytes that were laid out in the reserved room are the records of
 * @entry, or, if NULL, a record of another kind.  @n: how many pieces of code
 * or moves that is, 0 or 1.
 */
void seam_writer_commit(struct seam_jitdump *dump, size_t size, uint64_t n,
			struct seam_writer_entry *entry);

/* Reserve, lay out and commit the header of a dump. */
int seam_writer_add_header(struct seam_jitdump *dump);

/* Write all that is buffered or queued.  What fails is counted as lost. */
int seam_writer_flush(struct seam_jitdump *dump);

/* Count @n pieces of code or moves as lost.  Returns @error. */
int seam_writer_lose(struct seam_jitdump *dump, uint64_t n, int error);

/*
 * After a call that stopped in the middle because its thread died: keep the
 * records that are whole, so that @dump can be written to again.
 */
void seam_writer_repair(struct seam_jitdump *dump);

/* ---- records.c ---- */

/* Bytes of the records of @code, or more; 0: no record can hold it. */
size_t seam_writer_code_bytes(const struct seam_jitdump *dump,
			      const struct seam_jitdump_code *code);

/* Each of these lays records out at @to and returns their bytes. */
size_t seam_writer_put_header(const struct seam_jitdump *dump, uint8_t *to);
size_t seam_writer_put_code(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_jitdump_code *code, uint64_t id,
			    uint64_t addr);
size_t seam_writer_put_move(uint8_t *to, const struct seam_writer_entry *from,
			    uint64_t id, uint64_t new_addr);
size_t seam_writer_put_close(uint8_t *to);

/* Bytes that are enough for a header, a move or a close. */
enum { SEAM_WRITER_SMALL = 64 };

/*
 * The line of a map that is @line, with another address.  @to has room for
 * @size + SEAM_WRITER_MAX_HEX.
 */
size_t seam_writer_put_line_at(uint8_t *to, const uint8_t *line, size_t size,
			       uint64_t addr);

enum { SEAM_WRITER_MAX_HEX = 16 };	/* digits of an address */

/*
 * Whether @bytes are records, and no header, whose sizes make up @size.  They
 * were laid out here; but others can write to the file, and the program to its
 * memory.
 */
bool seam_writer_is_whole(const uint8_t *bytes, size_t size);

/*
 * Make the records of a parent's piece of code those of this process, at
 * @addr and now.  False when seam_writer_is_whole() is.
 */
bool seam_writer_adopt(uint8_t *records, size_t size, uint64_t addr);

/* ---- inherit.c ---- */

/*
 * Add the records of @from, which @out has, once more: of this process, now, at
 * @addr.  They become those of @entry unless it is NULL.  Not for a stream.
 */
int seam_writer_copy(struct seam_jitdump *dump,
		     const struct seam_writer_output *out,
		     const struct seam_writer_entry *from, uint64_t addr,
		     struct seam_writer_entry *entry);

/*
 * Free the memory of @out.  It is forgotten before it is unmapped, after which
 * the program can map its addresses.
 */
void seam_writer_release(struct seam_writer_output *out);

/*
 * In a forked child: an output of its own, with all code that is loaded.
 * Returns 0, or why some of it was lost, which is counted.
 */
int seam_writer_inherit(struct seam_jitdump *dump);

#endif /* SEAM_TRACED_WRITER_H */
