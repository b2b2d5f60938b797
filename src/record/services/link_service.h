/* SPDX-License-Identifier: MIT */
/*
 * link.h - programs that stream what their JITs make into the recording
 *
 * The recorder listens at a socket whose address the command finds in its
 * environment (SEAM_LINK).  A program that was linked with libseam-jitdump
 * meets it there, gets rings, and writes into them what it would else write
 * to a file; in each round the rings are emptied into the bundle's jit/.
 * ring/link/link_server.h and ring/link/owners.h say how they meet and who is who.
 *
 * Whose a ring is:
 *
 *  - the process's that has the memory mapped, as /proc shows;
 *  - of one that has ended, or that /proc does not show us: the process's that
 *    connected, by the kernel's word; or one's that was forked from it after
 *    it got the memory, with no exec on the way, as FORK and COMM records tell.
 *
 * An exec ends that: what a ring has after it counts as from before it, when
 * the process was still the one that had the memory.  So that the exec is known
 * by then, what is in a ring is copied in one round and used in the next, after
 * the side-band.  A ring that is nobody's is not read.
 *
 * What a program says that it lost is bounded by what a program can make in
 * the time that it was there.
 *
 * Nothing here fails a recording.  Threads: one.
 */
#ifndef SEAM_LINK_SERVICE_H
#define SEAM_LINK_SERVICE_H

#include "record/bundle/bundle.h"
#include "record/services/jit_stream.h"
#include "ring/link/link_server.h"
#include "wire/losses.h"
#include "wire/perf/perf_writer.h"

enum { SEAM_RECORD_JIT_RING_BYTES = 1 << 20 };

/* A process that was forked, in the time that it was one program. */
struct seam_record_child {
	uint32_t pid, parent;
	uint64_t fork_ns, exec_ns;	/* exec_ns 0: none so far */
};

struct seam_record_link {
	bool is_open;			/* somebody may come */
	bool has_news;			/* and wants something of us */
	struct seam_link_server server;
	struct seam_jit_dumps dumps;
	SEAM_ARRAY(struct seam_record_child) children;	/* latest last */
	uint32_t first_child;		/* number of the first in there */
	uint32_t *latest;		/* child by pid: its number; 0: none */
	bool other_clock;		/* of the records; the caller's */
	uint64_t checked_ns;		/* when the dead were looked for */
	uint8_t *record;		/* room for one */

	/* The caller's, set before the first round. */
	const struct seam_bundle *bundle;
	struct seam_perf_writer *writer;
	uint64_t sideband_id;

	uint64_t n_failed;		/* programs that we had no ring for */
	struct seam_err why;		/* the first of these */
	uint64_t n_unproven;		/* rings that were nobody's */
	uint64_t n_unringed;		/* pieces of those without a ring */
};

/*
 * Listen, with @ring_bytes for each process, and put the address into our
 * environment: fork the command, then seam_record_link_forked().  Where that
 * cannot be done programs write files, and @why (may be NULL) says it.
 */
void seam_record_link_open(struct seam_record_link *link, size_t ring_bytes,
			   struct seam_err *why);
void seam_record_link_forked(struct seam_record_link *link);

/* Look at a side-band record, before the round after it. */
void seam_record_link_see(struct seam_record_link *link,
			  const struct seam_ring_header *record);

/*
 * Meet, empty, part.  After each round of the kernel's rings; costs nothing
 * while there is no program.
 */
void seam_record_link_round(struct seam_record_link *link);

/*
 * The last round: shut the door, stop the rings, take what is in them.  The
 * counts are final then.  Again is harmless.
 */
void seam_record_link_finish(struct seam_record_link *link);

/*
 * Copy what has been streamed by now into the jit/ of another bundle, a
 * snapshot's.  0 or -errno.
 */
int seam_record_link_copy(struct seam_record_link *link,
			  const struct seam_bundle *bundle,
			  struct seam_err *err);

/* Set the counts of JIT code in @losses; pieces not received, at the end. */
void seam_record_link_losses(const struct seam_record_link *link,
			     struct seam_losses *losses);

/* Valid on a zeroed one. */
void seam_record_link_fini(struct seam_record_link *link);

#endif /* SEAM_LINK_SERVICE_H */
