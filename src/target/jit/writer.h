/* SPDX-License-Identifier: MIT */
/*
 * writer.h - what is inside struct seam_jitdump
 *
 * place.c makes the file and its marker, output.c gets bytes into it or
 * counts them as lost, stream.c gets them to a recorder instead, records.c
 * lays records out, live.c knows which code is there and makes a child's dump
 * of it, repair.c puts in order what a thread that died left, jitdump.c is the
 * public face.
 *
 * Everything but the turn and the counter belongs to whoever has the turn.
 * A fork can happen while another thread has it; so what a child looks at is
 * always changed last: a count after the element, used after the bytes.
 */
#ifndef SEAM_TARGET_WRITER_H
#define SEAM_TARGET_WRITER_H

#include <seam/jitdump.h>

#include "base/base.h"
#include "target/jit/stream.h"
#include "target/jit/turn.h"

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
	int fd;			/* -1: none; nothing can be written */
	struct seam_writer_identity identity;	/* when we opened it */
	uint64_t size;		/* bytes that are whole records */
	void *marker;		/* the mapped page, or NULL */
	char path[SEAM_WRITER_PATH_BYTES];
};

/*
 * Bytes on their way to the file: they stand behind its size.  Of a stream,
 * all that is kept: there is no file, and its size is 0.
 */
struct seam_writer_buffer {
	uint8_t *bytes;
	size_t used, cap;
	uint64_t n;		/* pieces of code and moves in it */
	uint64_t pos;		/* in the file, of its first byte */
};

/*
 * A piece of code, and where its records are.  Without records (lost) nobody
 * inherits it, but it can be moved and unloaded.
 */
struct seam_writer_entry {
	uint64_t pos;		/* in the file, or behind it in the buffer */
	uint64_t addr;		/* where it is */
	uint64_t written_addr;	/* where its records say it is */
	uint64_t code_size;
	uint32_t size;		/* bytes of records; 0: none */
	bool is_there;		/* not unloaded */
};

/* Entry i is of id i + 1. */
struct seam_writer_entries {
	struct seam_writer_entry *items;
	size_t n, cap;
	/* in a child, while it takes them over: so many are done */
	size_t n_inherited;
	bool is_inheriting;
};

struct seam_jitdump {
	struct seam_turn turn;
	_Atomic uint64_t n_lost;	/* any thread adds and reads */
	int32_t pid;			/* whose dump this is */
	enum seam_jitdump_format format;
	bool is_buffered;
	struct seam_writer_file file;
	struct seam_writer_buffer buffer;
	struct seam_writer_entries entries;
	struct seam_writer_stream stream;
	char folder[SEAM_WRITER_PATH_BYTES];	/* where the file is */
};

/* ---- memory, without malloc ---- */

/* @size bytes of zeros in whole pages, or NULL. */
void *seam_writer_map(size_t size);
void seam_writer_unmap(void *p, size_t size);

/*
 * Another thread may fork at any instruction, and the child goes on with what
 * memory holds then: what comes before this is there before what comes after.
 */
static inline void seam_writer_may_fork(void)
{
	/* release: pairs with the copy of memory that fork() is */
	atomic_thread_fence(memory_order_release);
}

/*
 * More room for the array of pages at *@array, which may be NULL.  False, and all
 * as it was, without memory.  Whoever is forked in the middle of it has the
 * one or the other: mremap() would leave it with neither for a moment.
 */
bool seam_writer_grow(void *array, size_t size, size_t bigger);

/* ---- place.c ---- */

/*
 * Make @dump's file in @folder: named, empty, marked.  0, or -errno and no
 * file; -EEXIST: it is in use.
 */
int seam_writer_create(struct seam_jitdump *dump, const char *folder);

/* The same in the first folder that will do; @folder NULL: see jitdump.h. */
int seam_writer_place(struct seam_jitdump *dump, const char *folder);

/* Undo that. */
void seam_writer_discard(struct seam_writer_file *file);

/* The descriptor is still what it was when it was opened. */
bool seam_writer_is_ours(const struct seam_writer_file *file);

/* ---- output.c ---- */

/*
 * Room for @size bytes behind those that wait, written out or made as needed;
 * NULL with *@error set.  The bytes count once they are committed.
 */
uint8_t *seam_writer_reserve(struct seam_jitdump *dump, size_t size,
			     int *error);
/* They are @n pieces of code or moves. */
void seam_writer_commit(struct seam_jitdump *dump, size_t size, uint64_t n);

/* Write out what waits.  On failure that is lost, and counted. */
int seam_writer_flush(struct seam_jitdump *dump);

/*
 * Cut off what is in the file after its last whole record.  Where that fails
 * the file is let go: nothing more is added to it.
 */
void seam_writer_cut(struct seam_writer_file *file);

/* Count @n pieces of code or moves as lost.  Returns @error. */
int seam_writer_lose(struct seam_jitdump *dump, uint64_t n, int error);

/* ---- records.c ---- */

/* The most bytes that the records of @code need; 0: no record can hold it. */
size_t seam_writer_code_bytes(const struct seam_jitdump *dump,
			      const struct seam_jitdump_code *code);

/* All of these lay records out at @to and return their bytes. */
size_t seam_writer_put_header(const struct seam_jitdump *dump, uint8_t *to);
size_t seam_writer_put_code(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_jitdump_code *code, uint64_t id,
			    uint64_t addr);
size_t seam_writer_put_move(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_writer_entry *from, uint64_t id,
			    uint64_t new_addr);
size_t seam_writer_put_close(uint8_t *to);

enum { SEAM_WRITER_SMALL = 64 };	/* header, move and close fit in it */

/*
 * Turn the records of a piece of code at @was_addr, of our parent, into ours:
 * process, time, and the address @addr it has now.  False: they are no records.
 */
bool seam_writer_adopt(const struct seam_jitdump *dump, uint8_t *records,
		       size_t size, uint64_t was_addr, uint64_t addr);

/* A line of a map with another address.  @to has room for @size + 16. */
size_t seam_writer_adopt_line(uint8_t *to, const uint8_t *line, size_t size,
			      uint64_t addr);

/* ---- live.c ---- */

/*
 * Note the code of @size bytes of records at @pos, and give it an id.  0 when
 * memory ran out.
 */
uint64_t seam_writer_remember(struct seam_jitdump *dump,
			      const struct seam_writer_entry *entry);

/* The entry of @id, or NULL when there is no such code now. */
struct seam_writer_entry *seam_writer_entry(struct seam_jitdump *dump,
					    uint64_t id);

/* What waits is lost: a child cannot inherit the code that is in it. */
void seam_writer_forget_waiting(struct seam_jitdump *dump);

/* The records of @entry into @to, from the file or the buffer. */
bool seam_writer_read(const struct seam_writer_file *file,
		      const struct seam_writer_buffer *buffer,
		      const struct seam_writer_entry *entry, uint8_t *to);

/*
 * In a child: a file of its own, with all code that is there.  0, or why some
 * of it was lost, and counted.
 */
int seam_writer_inherit(struct seam_jitdump *dump);

/* ---- repair.c ---- */

/*
 * After a call that stopped in the middle, because its thread died: @dump can
 * be written to again.  0, or why some of it was lost, and counted.
 */
int seam_writer_repair(struct seam_jitdump *dump);

#endif /* SEAM_TARGET_WRITER_H */
