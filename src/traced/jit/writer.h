/* SPDX-License-Identifier: MIT */
/*
 * writer.h - inside struct seam_jitdump
 *
 *	writer.c	the public functions, one call at a time: records on
 *			their way to a file, or to a recorder through a ring;
 *			what a forked child inherits
 *	records.c	the layout of records
 *	memory.c	blocks of records, and the table of all code
 *
 * The truth is in memory: an entry of the table refers to the block with the
 * records of its code.  The file, or the ring, has copies.  A child that is
 * forked, at any moment of another thread's call, uses only the table and the
 * blocks that it refers to; the rest is in memory that the kernel zeroes in a
 * child (struct seam_writer_own).  So three stores have an order: a block is
 * complete before an entry refers to it; no entry refers to a block that is
 * freed; a larger table is complete before it is the table
 * (seam_writer_barrier()).  See doc/design/jit-writer.md.
 *
 * All members but the counters belong to the thread whose call it is.
 */
#pragma once

#include <seam/jitdump.h>

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "ring/link/link.h"

enum {
	SEAM_WRITER_BUFFER_BYTES = 64 * 1024,	/* then a file is written */
	SEAM_WRITER_MAX_QUEUED = 64 << 20,	/* bytes, for a ring */
	SEAM_WRITER_PATH_BYTES = 4096,
	SEAM_WRITER_N_SIZES = 257,		/* of small blocks */
	SEAM_WRITER_N_PARTS = 512,		/* blocks in a write */
};

/* The records of one call for one piece of code, or another record. */
struct seam_writer_block {
	struct seam_writer_block *next;	/* in the queue, or in a free list */
	uint64_t id;		/* of the code whose entry refers to it; or 0 */
	uint32_t size;		/* bytes of records */
	uint32_t n_sent;	/* of these, in the ring */
	uint32_t cap;		/* bytes of the block, this struct included */
	uint8_t n;		/* 1: a piece of code or a move; 0: neither */
	bool is_queued;
	uint8_t bytes[];
};

/* The memory of all blocks.  Zeroed: empty. */
struct seam_writer_memory {
	struct seam_writer_chunk *chunks;
	struct seam_writer_block *free[SEAM_WRITER_N_SIZES];
};

/*
 * A piece of code.  Without a block (its records were lost) no child inherits
 * it, but it can be moved and unloaded.
 */
struct seam_writer_entry {
	struct seam_writer_block *block;
	uint64_t addr;			/* current, in this process */
	uint64_t code_size;
	bool is_loaded;			/* and not unloaded */
};

/* Entry i has id i + 1. */
struct seam_writer_entries {
	struct seam_writer_entry *items;
	size_t n, cap;
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

/* What belongs to one process: zeros in a forked child. */
struct seam_writer_own {
	_Atomic uint32_t lock;		/* 0: free, 1: held, 2: waited for */
	_Atomic uint32_t is_stuck;	/* a wait timed out: do not wait */
	int32_t pid;			/* 0: of a child without a dump */
	int32_t tid;			/* of the thread whose call it is */
	struct seam_writer_block *head, *tail;	/* the queue */
	size_t n_queued;		/* bytes in it */
	/* ---- of a stream */
	bool has_ring;
	struct seam_ring_claim claim;
	/* Pieces of code and moves so far.  Any thread adds. */
	_Atomic uint64_t n_offered;
	uint64_t n_announced;	/* of these, in the ring's control page */
};

struct seam_jitdump {
	struct seam_writer_own *own;
	_Atomic uint64_t n_lost;	/* any thread adds and reads */
	enum seam_jitdump_format format;
	bool is_buffered;
	bool is_streamed;		/* to a recorder, not to a file */
	bool is_over;			/* nothing more is streamed */
	struct seam_writer_entries entries;
	struct seam_writer_memory memory;
	struct seam_link_client client;	/* of a stream */
	struct seam_writer_file file;
	struct iovec parts[SEAM_WRITER_N_PARTS];
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

/* @size zeroed bytes in whole pages, not from malloc; or NULL. */
static inline void *seam_writer_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static inline void seam_writer_unmap(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

/* ---- memory.c ---- */

/* A block for @size bytes; NULL without memory. */
struct seam_writer_block *seam_writer_alloc(struct seam_writer_memory *m,
					    size_t size);
void seam_writer_free(struct seam_writer_memory *m,
		      struct seam_writer_block *block);

/* Add code at @addr, without records.  Returns its id; 0 without memory. */
uint64_t seam_writer_add_entry(struct seam_writer_entries *entries,
			       uint64_t addr, uint64_t code_size);

/*
 * Free all blocks, of the queue too.  Small ones are not stored to: a child
 * shares their pages.
 */
void seam_writer_free_blocks(struct seam_jitdump *dump);

/* ---- writer.c, for its test ---- */

/*
 * Create @file of process @pid in @folder, empty, locked and with its marker
 * mapped.  Returns 0, or -errno and no file; -EEXIST: it is in use.
 */
int seam_writer_create_file(struct seam_writer_file *file,
			    enum seam_jitdump_format format, int32_t pid,
			    const char *folder);

/* Close @file and unmap its marker; the file itself stays. */
void seam_writer_close_file(struct seam_writer_file *file);

/* ---- records.c ---- */

/* Bytes of the records of @code, or more; 0: no record can hold it. */
size_t seam_writer_code_bytes(const struct seam_jitdump *dump,
			      const struct seam_jitdump_code *code);

/* Each of these lays records out at @to and returns their bytes. */
size_t seam_writer_put_header(const struct seam_jitdump *dump, uint8_t *to);
size_t seam_writer_put_code(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_jitdump_code *code, uint64_t id,
			    uint64_t addr);
size_t seam_writer_put_move(const struct seam_jitdump *dump, uint8_t *to,
			    const struct seam_writer_entry *from, uint64_t id,
			    uint64_t new_addr);
size_t seam_writer_put_close(uint8_t *to);

/* Bytes that are enough for a header, a move or a close. */
enum { SEAM_WRITER_SMALL = 64 };

/*
 * The @size bytes of records at @from once more at @to: of code at @addr, of
 * this process, now.  @to has room for @size + SEAM_WRITER_MAX_HEX.
 */
size_t seam_writer_put_again(const struct seam_jitdump *dump, uint8_t *to,
			     const uint8_t *from, size_t size, uint64_t addr);

enum { SEAM_WRITER_MAX_HEX = 16 };	/* digits of an address in a map */
