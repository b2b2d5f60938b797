/* SPDX-License-Identifier: MIT */
/*
 * services.h - rings of traced programs: connect, drain, find their owners
 *
 * The recorder listens at a socket whose address the command finds in its
 * environment (SEAM_LINK).  service.h defines a service.
 *
 * A round of the drain (record/drain.h) has three parts here, so that each
 * fork, exec and exit that happened before a record was copied is known when
 * the record is used:
 *
 *	seam_services_copy()	copy the records out of the programs' rings
 *	... records of tasks are read: seam_services_see_task() ...
 *	seam_services_learn()	find the owners of the rings
 *	... the kernel's rings are read, and with them the side-band ...
 *	seam_services_take()	hand the copies to the services
 *
 * Whose a ring is: doc/design/owners.md.  A ring without an owner is dropped
 * and counted; counts of a program are bounded by what it can produce in its
 * time.  Nothing here fails a recording.  Threads: one.
 */
#pragma once

#include "record/services/service.h"
#include "record/services/task_tree.h"

struct seam_services {
	bool is_open;
	bool is_ready;			/* the caller's: a socket is readable */
	bool is_last;			/* the round is */
	bool other_clock;		/* the caller's: "data" has another */
	bool is_unordered;		/* the caller's: no FINISHED_ROUND */
	/*
	 * The caller's: a claim of which nothing is known is believed, as of
	 * the process with its number.  There is no side-band, and whoever has
	 * the rings is one program and its children.
	 */
	bool believes_claims;
	struct seam_link_server server;
	struct seam_service *items[SEAM_LINK_MAX_SERVICES];
	size_t n;
	struct seam_task_tree tree;
	struct seam_synth round;	/* records of this round */
	/* the ends of the round before, and of the one before that */
	uint64_t round_ns, floor_ns;
	uint64_t begin_ns;		/* of this round, before the copies */
	uint64_t checked_ns;		/* when processes were last checked */
	uint8_t *record;		/* room for one */
	uint8_t *unit;			/* room for the largest aux_unit */

	/* Valid once closed: */
	uint64_t n_failed;		/* programs refused for our errors */
	struct seam_err why;		/* the first of these */
	uint64_t n_notes;		/* of programs, for the user */
	char note[SEAM_LINK_NOTE_BYTES];	/* the last; not trusted */
};

/*
 * Add a service, which the caller owns, before opening: at most
 * SEAM_LINK_MAX_SERVICES.
 */
void seam_services_add(struct seam_services *s, struct seam_service *service);

/*
 * Listen, at server.address.  Where that fails, programs get no rings, and @why
 * (may be NULL) is the cause.
 */
void seam_services_open(struct seam_services *s, struct seam_err *why);

/* A record of a task, for the owners of rings: each once, before learn(). */
void seam_services_see_task(struct seam_services *s,
			    const struct seam_perf_sideband *record);

/*
 * The parts of a round.  In the last one the rings are stopped first, and
 * nothing is left in them.  The records that seam_services_take() returns are
 * valid until the next round.  Cost without a program: none but for the tasks.
 */
void seam_services_copy(struct seam_services *s, bool is_last);
void seam_services_learn(struct seam_services *s);
struct seam_bytes seam_services_take(struct seam_services *s);

/*
 * Hand what is now in free-running AUX buffers to their services' snapshot_aux,
 * a copy of one thread after another; the threads go on.
 */
void seam_services_snapshot_aux(struct seam_services *s);

/*
 * Process @pid has skipped items for @cause, an index of n_skipped: what is in
 * its free-running AUX buffers of @service before that is in no later copy, so
 * each copy is without a gap.
 */
void seam_services_skip_gaps(struct seam_services *s,
			     const struct seam_service *service, uint32_t pid,
			     unsigned int cause);

/* The control page of the ring of @service of process @pid; NULL: none. */
struct seam_ring_control *seam_services_control(
		struct seam_services *s, const struct seam_service *service,
		uint32_t pid);

/* ---- what service.h has of the recording, of all services ---- */

/*
 * Call @function of each service that has it, with the arguments that follow,
 * in the order in which the services were added.
 */
#define SEAM_SERVICES_CALL(s, function, ...)				\
	for (size_t i_ = 0; i_ < (s)->n; i_++)				\
		if ((s)->items[i_]->function)				\
			(s)->items[i_]->function((s)->items[i_],	\
						 ##__VA_ARGS__)

/* The service that supersedes samples of the recorder; NULL: none. */
struct seam_service *seam_services_superseder(const struct seam_services *s);

/* No samples from before @ns; names of them are wanted. */
void seam_services_set_from(struct seam_services *s, uint64_t ns);

/* The first of all; UINT64_MAX: none. */
uint64_t seam_services_due_ns(const struct seam_services *s);

uint64_t seam_services_bytes(const struct seam_services *s);

/* In the order in which they were added.  The first -errno ends it. */
int seam_services_copy_to(struct seam_services *s,
			  const struct seam_bundle *bundle,
			  struct seam_err *err);

/* Stop listening; what is still in the rings is dropped.  May be repeated. */
void seam_services_close(struct seam_services *s);

/* Valid on a zeroed struct. */
void seam_services_fini(struct seam_services *s);
