/* SPDX-License-Identifier: MIT */
/*
 * batch_sum.h - the rows of many batches that a query selects, added up
 *
 * What an engine does in its own language, for stores that have none.  Rows of
 * calls are selected and kept one by one: readers add them up.
 *
 * Memory: the sum.  Threads: one.
 */
#pragma once

#include "fleet/store.h"
#include "wire/fleet/batch_file.h"

struct seam_fleet_sum {
	const struct seam_fleet_query *query;	/* outlives the sum */
	struct seam_batch *batch;		/* to which rows are added */
	struct seam_index frames, stacks, samples, losses;
	uint64_t n_rows;			/* that were selected */
};

/* Zeroed but for query and batch, it is empty. */
void seam_fleet_sum_fini(struct seam_fleet_sum *sum);

/* Whether a file with this head can have rows of @query. */
bool seam_fleet_sum_wants(const struct seam_fleet_query *query,
			  const struct seam_batch_head *head);

/* Add the selected rows of @from, their frames and stacks.  0 or -errno. */
int seam_fleet_sum_add(struct seam_fleet_sum *sum,
		       const struct seam_batch *from, struct seam_err *err);

/* Add a loss: all of the query's time. */
int seam_fleet_sum_lost(struct seam_fleet_sum *sum, const char *cause,
			const char *source, uint64_t bytes,
			struct seam_err *err);
