/* SPDX-License-Identifier: MIT */
/*
 * jit_stream.h - groups of JITDUMP records from rings to jit/jit-PID.dump
 *
 *	stream = seam_jit_stream_begin(&dumps, pid, since_ns);
 *	for each record of the ring:
 *		seam_jit_stream_take(stream, record, size);
 *	seam_jit_dumps_write(&dumps);		once a round
 *
 * A dump is a JITDUMP file as any writer makes it.  A process has one, also
 * where it had several streams one after another (an exec, a second writer in
 * it, a reused pid): the streams have separate ranges of code ids.
 *
 * A stream is untrusted.  A group that is not exactly what the writer makes is
 * dropped and counted; process, thread, ids and times are overwritten or
 * bounded.  A hostile stream can only spoil the names of its own process, and
 * use memory: unfinished groups of all streams may have 256 MiB, and when
 * that is full the largest is dropped.  So among n streams no piece of code of
 * less than 128 MiB / (n + 1) is dropped, and each dropped one is counted.
 *
 * Threads: one.
 */
#ifndef SEAM_JIT_STREAM_H
#define SEAM_JIT_STREAM_H

#include "base/array.h"
#include "base/err.h"
#include "wire/jit/jit_chunk.h"
#include "wire/jit/jitdump.h"

/* A dump that is being written. */
struct seam_jit_dump_file {
	uint32_t pid;
	int fd;				/* -1: it could not be made */
	uint64_t n_bytes;		/* written: whole groups */
	uint32_t n_streams;
	bool is_named;			/* in the recording */
	SEAM_ARRAY(uint8_t) pending;	/* for the next write */
	uint64_t n_pending;		/* pieces of code and moves */
};

struct seam_jit_dumps {
	int folder;			/* of the bundle; borrowed */
	SEAM_ARRAY(struct seam_jit_dump_file) files;
	struct seam_jit_stream *streams;	/* a list of those begun */
	uint64_t n_group_bytes;		/* allocated for their groups */
	/*
	 * Called with each group of records that was split into several, once
	 * it is whole; see jit_service.h.  May be NULL.
	 */
	void (*on_code)(void *context, uint32_t pid, struct seam_bytes group);
	void *context;

	uint64_t n_streams;
	/* Pieces of code and moves. */
	uint64_t n_written;		/* in files */
	uint64_t n_unwritten;		/* of those taken: the write failed */
	uint64_t n_offered;		/* by streams that have ended */
	uint64_t n_taken;		/* from streams that have ended */
	uint64_t n_bad;			/* invalid groups */
};

/* The stream of one ring, and its unfinished group. */
struct seam_jit_stream {
	struct seam_jit_dumps *dumps;
	struct seam_jit_stream *next;
	size_t file;			/* of dumps->files */
	uint32_t pid, tid;		/* tid: the last that was verified */
	uint64_t since_ns;		/* no time is before it */
	uint64_t until_ns;		/* nor after it; 0: no bound */
	uint64_t id_base;
	SEAM_ARRAY(uint8_t) group;
	bool is_begun;			/* the group is */
	bool is_split;			/* it has more than one chunk */
	uint64_t n_taken;		/* pieces of code and moves */
};

/* Begin a stream of process @pid, connected at @since_ns.  NULL: no memory. */
struct seam_jit_stream *seam_jit_stream_begin(struct seam_jit_dumps *dumps,
					      uint32_t pid, uint64_t since_ns);

/* Take one record, a private copy (seam_ring_copy()), header included. */
void seam_jit_stream_take(struct seam_jit_stream *stream, uint8_t *record,
			  size_t size);

/* End and free it; @n_offered is its writer's count. */
void seam_jit_stream_end(struct seam_jit_stream *stream, uint64_t n_offered);

/* Write the pending groups.  Failures are counted. */
void seam_jit_dumps_write(struct seam_jit_dumps *dumps);

/* Put copies of all files as they are now into @folder.  0 or -errno. */
int seam_jit_dumps_copy(const struct seam_jit_dumps *dumps, int folder,
			struct seam_err *err);

/* Close all files. */
void seam_jit_dumps_fini(struct seam_jit_dumps *dumps);

#endif /* SEAM_JIT_STREAM_H */
