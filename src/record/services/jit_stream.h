/* SPDX-License-Identifier: MIT */
/*
 * jit_stream.h - what JITs say in rings becomes jit/jit-PID.dump
 *
 *	seam_jit_stream_begin(&stream, &dumps, pid, since_ns);
 *	for each record of the ring:
 *		seam_jit_stream_take(&stream, record, size);
 *	seam_jit_dumps_write(&dumps);		once a round
 *
 * A dump is a JITDUMP file as any writer makes it.  A process has one, also
 * where it had several streams one after another (an exec, a second writer in
 * it, a pid that was used again): their ids of code are kept apart.
 *
 * Nothing of a stream is believed.  A group that is not exactly what the
 * writer makes is dropped and counted; process, thread, ids and times are
 * written over or bounded.  A stream that lies spoils the names of its own
 * process.  What it can take from others is room: unfinished groups may have
 * 256 MiB in all, and where that is full the largest goes, whoever's it is.
 * Among n streams nobody loses a piece of code of less than
 * 128 MiB / (n + 1) that way, and each that is lost is counted.
 *
 * Threads: one.
 */
#ifndef SEAM_JIT_STREAM_H
#define SEAM_JIT_STREAM_H

#include "base/array.h"
#include "base/err.h"
#include "ring/link/jit_chunk.h"
#include "wire/jit/jitdump.h"

/* A file in the making. */
struct seam_jit_dump_file {
	uint32_t pid;
	int fd;				/* -1: it could not be made */
	uint64_t n_bytes;		/* in it: whole groups */
	uint32_t n_streams;
	bool is_named;			/* in the recording */
	SEAM_ARRAY(uint8_t) pending;	/* for the next write */
	uint64_t n_pending;		/* pieces of code and moves in it */
};

/* A group as far as it has come, of the stream that has this number. */
struct seam_jit_group {
	SEAM_ARRAY(uint8_t) bytes;
	bool is_begun;
	bool is_taken;			/* by a stream */
};

struct seam_jit_dumps {
	int folder;			/* of the bundle; borrowed */
	SEAM_ARRAY(struct seam_jit_dump_file) files;
	SEAM_ARRAY(struct seam_jit_group) groups;
	uint64_t n_group_bytes;		/* held for groups, used or not */

	uint64_t n_streams;
	uint64_t n_written;		/* pieces of code and moves, in files */
	uint64_t n_unwritten;		/* of those taken, for failed writes */
	uint64_t n_bad;			/* groups that were none */
	uint64_t n_offered;		/* by those that have ended */
	uint64_t n_taken;		/* from those that have ended */
};

/* One ring's worth.  Zeroed is one that has not begun. */
struct seam_jit_stream {
	struct seam_jit_dumps *dumps;	/* NULL: not begun */
	size_t file;			/* of dumps->files */
	uint32_t pid, tid;		/* tid: the last that was proven */
	uint64_t since_ns;		/* no time is before it */
	uint64_t until_ns;		/* nor after it; 0: it has no end */
	uint64_t id_base;
	size_t group;			/* of dumps->groups */
	uint64_t n_taken;		/* pieces of code and moves */
};

/* Begin a stream of process @pid, connected at @since_ns.  0 or -ENOMEM. */
int seam_jit_stream_begin(struct seam_jit_stream *stream,
			  struct seam_jit_dumps *dumps, uint32_t pid,
			  uint64_t since_ns);

/* Take one record, a copy of our own (seam_ring_copy()), header and all. */
void seam_jit_stream_take(struct seam_jit_stream *stream, uint8_t *record,
			  size_t size);

/* No more comes; its writer says that it offered so much. */
void seam_jit_stream_end(struct seam_jit_stream *stream, uint64_t n_offered);

/* Write what was taken.  Failures are counted, and tried again. */
void seam_jit_dumps_write(struct seam_jit_dumps *dumps);

/* Put copies of all files as they are now into @folder.  0 or -errno. */
int seam_jit_dumps_copy(const struct seam_jit_dumps *dumps, int folder,
			struct seam_err *err);

/* Close all files. */
void seam_jit_dumps_fini(struct seam_jit_dumps *dumps);

#endif /* SEAM_JIT_STREAM_H */
