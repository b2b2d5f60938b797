/* SPDX-License-Identifier: MIT */
/*
 * store.h - where the profiles of a fleet are: a folder, or ClickHouse
 *
 * Both keep the same batches (wire/fleet/batch.h) and answer the same query
 * with one batch: rows added up over what the query does not keep apart, and
 * the frames and stacks of these rows.  model/fleet makes a profile of the
 * answer, so every view of a recording is one of a fleet.
 *
 *	put	a batch, once: a second put of the same id changes nothing
 *	ask	a query; the answer says what of the store did not answer
 *
 * Threads: one a store.
 */
#pragma once

#include "wire/fleet/batch.h"

/* What a query keeps apart; rows that differ elsewhere are added up. */
enum seam_fleet_keep {
	SEAM_FLEET_KEEP_WINDOW = 1 << 0,	/* of step_ns */
	SEAM_FLEET_KEEP_SERVICE = 1 << 1,
	SEAM_FLEET_KEEP_HOST = 1 << 2,
	SEAM_FLEET_KEEP_PROCESS = 1 << 3,	/* with HOST: pids too */
	SEAM_FLEET_KEEP_THREAD = 1 << 4,	/* names; with HOST: tids too */
};

struct seam_fleet_query {
	const char *service, *host;	/* GLOBs (fnmatch(3)); NULL: all */
	const char *const *labels;	/* "key=value": rows with all of them */
	size_t n_labels;
	uint64_t from_ns, to_ns;	/* UTC, [from, to) */
	const char *event;		/* names with commas; NULL: all */
	unsigned int keep;		/* enum seam_fleet_keep */
	uint64_t step_ns;		/* of KEEP_WINDOW: n * 10 s */
	bool with_calls;		/* histograms of calls, no samples */
};

struct seam_fleet_answer {
	struct seam_batch batch;
	uint64_t n_rows;		/* that were added up */
	/* Nodes of the store, and those that did not answer: partial. */
	unsigned int n_nodes, n_missing;
	char missing[400];		/* their names, and why */
};

struct seam_fleet_store;

/* Where a store is, and what its server wants to know. */
struct seam_fleet_place {
	const char *where;		/* a folder, or http: or https: */
	const char *credentials;	/* file (http.h); NULL: environment */
	const char *ca_file;		/* PEM; NULL: the system's */
	/*
	 * URL of a receiver of OpenTelemetry profiles, which gets each batch
	 * too; .where may be NULL then.  It may get one more than once.
	 */
	const char *otlp;
};

/*
 * Open the folder, or the URL, of @place, whose strings are copied.  The first
 * put makes a folder that is not there; a query does not.  No server is asked
 * yet.  0 or -errno.
 */
int seam_fleet_open(struct seam_fleet_store **store,
		    const struct seam_fleet_place *place,
		    struct seam_err *err);
void seam_fleet_close(struct seam_fleet_store *store);

/*
 * Store @batch, whose bytes are @file (wire/fleet/batch_file.h), once.  0: it
 * is stored.  -EAGAIN: try again later, whether or not it was stored; other
 * -errno: the store will never take it.
 */
int seam_fleet_put(struct seam_fleet_store *store, struct seam_bytes file,
		   struct seam_err *err);

/* Batches that the store has, and the receiver .otlp of its place has not. */
struct seam_fleet_missed {
	uint64_t n_batches;
	struct seam_err why;		/* of the last */
};

/* NULL: none. */
const struct seam_fleet_missed *
seam_fleet_missed(const struct seam_fleet_store *store);

/* 0 or -errno; @answer is to be freed by seam_fleet_answer_fini() then too. */
int seam_fleet_ask(struct seam_fleet_store *store,
		   const struct seam_fleet_query *query,
		   struct seam_fleet_answer *answer, struct seam_err *err);
void seam_fleet_answer_fini(struct seam_fleet_answer *answer);
