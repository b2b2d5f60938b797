/* SPDX-License-Identifier: MIT */
/*
 * jit_service.h - service "jit": the code of JITs becomes jit/jit-PID.dump
 *
 * A program with libseam-jitdump writes into its rings what it would otherwise
 * write to a file (wire/jit/jitdump.h): groups of JITDUMP records, in chunks.
 * A dump is a JITDUMP file as any writer makes it.  A process has one, also
 * where it had several streams one after another (an exec, a second writer in
 * it, a reused pid): the streams have separate ranges of code ids.  Each dump
 * is named in the recording by a record as of a mapping of its file, which is
 * how every reader of perf.data finds one.
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
#pragma once

#include "base/array.h"
#include "record/bundle/bundle.h"
#include "record/services/service.h"
#include "wire/jit/jitdump.h"

enum { SEAM_RECORD_JIT_RING_BYTES = 1 << 20 };

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

/* The stream of one ring, and its unfinished group. */
struct seam_jit_stream {
	struct seam_jit_stream *next;
	size_t file;			/* of the service's files */
	uint32_t pid, tid;		/* tid: the last that was verified */
	uint64_t since_ns;		/* no time is before it */
	uint64_t until_ns;		/* nor after it; 0: no bound */
	uint64_t id_base;
	SEAM_ARRAY(uint8_t) group;
	bool is_begun;			/* the group is */
	bool is_split;			/* it has more than one chunk */
	uint64_t n_taken;		/* pieces of code and moves */
};

struct seam_jit_service {
	struct seam_service service;
	const struct seam_bundle *bundle;	/* borrowed */
	uint64_t sideband_id;		/* of the records that name dumps */
	int folder;			/* jit/ of the bundle; -1: not made */
	SEAM_ARRAY(struct seam_jit_dump_file) files;
	struct seam_jit_stream *streams;	/* a list of those begun */
	uint64_t n_group_bytes;		/* allocated for their groups */
	/*
	 * The caller's, or NULL: called with code as soon as it was copied,
	 * before the samples of the round; with a group of several chunks when
	 * it is whole.  Groups of one chunk were not checked.
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

/* With rings of @ring_bytes, a power of two.  @jit must stay where it is. */
void seam_jit_service_init(struct seam_jit_service *jit, size_t ring_bytes);

/* Close the dumps; the counts stay.  Valid on a zeroed struct. */
void seam_jit_service_fini(struct seam_jit_service *jit);
