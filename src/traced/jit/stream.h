/* SPDX-License-Identifier: MIT */
/*
 * stream.h - records to a recorder, through a ring, in place of a file
 *
 * The records of each call (a group, see ring/link/jit_chunk.h) are a block
 * of memory, and blocks on their way to the ring are a list.  Each call sends
 * as much as the ring has room for; a full ring never makes a call wait.  A
 * block that was sent is freed, unless it is of code that is loaded: a child
 * that is forked later queues those blocks again, for a ring of its own.
 *
 * Freed blocks are used again for blocks of their size; the memory of those
 * up to 16 KiB is not given back before the end.
 *
 * The dump's lock serializes writers of the ring.
 */
#ifndef SEAM_TRACED_STREAM_H
#define SEAM_TRACED_STREAM_H

#include "ring/link/link_client.h"

struct seam_jitdump;
struct seam_writer_entry;

enum {
	SEAM_STREAM_CONNECT_MS = 1000,	/* for the recorder to answer */
	SEAM_STREAM_MAX_QUEUED = 64 << 20,	/* bytes */
	SEAM_STREAM_N_SIZES = 257,	/* of small blocks */
};

struct seam_stream_block {
	struct seam_stream_block *next;	/* in the queue, or in a free list */
	uint64_t addr;		/* of the code, as the records have it */
	uint32_t size;		/* bytes of records */
	uint32_t n_sent;	/* of these, in the ring */
	uint32_t cap;		/* bytes of the block, this struct included */
	uint8_t n;		/* 1: a piece of code or a move; 0: neither */
	bool is_queued;
	bool is_kept;		/* an entry refers to it */
	uint8_t bytes[];
};

/* The memory of all blocks.  Zeroed: empty. */
struct seam_stream_memory {
	struct seam_stream_chunk *chunks;
	struct seam_stream_block *free[SEAM_STREAM_N_SIZES];
};

struct seam_writer_stream {
	bool is_on;		/* this dump is a stream, not a file */
	bool is_over;		/* nothing more is sent */
	bool has_ring;
	struct seam_stream_block *head, *tail;	/* the queue */
	size_t n_queued;	/* bytes in it */
	struct seam_stream_block *reserved;	/* not queued yet */
	/*
	 * While a chunk of the first block is put into the ring: the ring's
	 * head and the block's n_sent as they are afterwards.
	 */
	uint64_t ring_head;	/* 0: no chunk is being put */
	uint32_t n_sent;
	/* Pieces of code and moves so far.  Any thread adds. */
	_Atomic uint64_t n_offered;
	uint64_t n_announced;	/* of these, in the ring's control page */
	struct seam_stream_memory memory;
	struct seam_link_client client;
	struct seam_ring_claim claim;
};

/* ---- stream_block.c ---- */

/* A block for @size bytes; NULL without memory. */
struct seam_stream_block *seam_stream_alloc(struct seam_stream_memory *m,
					    size_t size);
void seam_stream_free(struct seam_stream_memory *m,
		      struct seam_stream_block *block);
/* Free @block if it is a mapping of its own; false: it is a small one. */
bool seam_stream_unmap(struct seam_stream_block *block);
/* Free all small blocks. */
void seam_stream_memory_fini(struct seam_stream_memory *m);

/* ---- stream.c ---- */

/*
 * Connect to the recorder at @address and claim a ring.  Returns 0, or -errno
 * and @dump unchanged: use a file then.
 */
int seam_stream_open(struct seam_jitdump *dump, const char *address);

/* As seam_writer_reserve() and seam_writer_commit(). */
uint8_t *seam_stream_reserve(struct seam_jitdump *dump, size_t size,
			     int *error);
void seam_stream_commit(struct seam_jitdump *dump, size_t size, uint64_t n,
			struct seam_writer_entry *entry);

/* As seam_writer_flush(): send what the ring has room for. */
int seam_stream_send(struct seam_jitdump *dump);

/* The code of @entry is unloaded: free its records, once they are sent. */
void seam_stream_unload(struct seam_jitdump *dump,
			struct seam_writer_entry *entry);

/* As seam_writer_repair() and seam_writer_inherit(). */
void seam_stream_repair(struct seam_jitdump *dump);
int seam_stream_inherit(struct seam_jitdump *dump);

/* Close the ring.  Queued records are lost, and the recorder counts them. */
void seam_stream_close(struct seam_jitdump *dump);

#endif /* SEAM_TRACED_STREAM_H */
