/* SPDX-License-Identifier: MIT */
/*
 * account_ledger.h - what one worker counts, and how ledgers add up
 *
 * Private to account.c, account_ledger.c and account_merge.c.
 */
#ifndef SEAM_ACCOUNT_LEDGER_H
#define SEAM_ACCOUNT_LEDGER_H

#include "base/index.h"
#include "model/account.h"
#include "model/stream_calls.h"

struct seam_ledger {
	struct seam_ledger *next;	/* owned by account.c */
	struct seam_calls calls;
	SEAM_ARRAY(struct seam_account_row) rows;	/* by slot */
	SEAM_ARRAY(struct seam_octave) octaves;
	SEAM_ARRAY(struct seam_account_edge) edges;
	struct seam_index edge_index;
	SEAM_ARRAY(struct seam_account_call) slowest;	/* heap, least first */
	const struct seam_account_options *options;
	uint32_t stream;
	struct seam_time_range range;
	struct seam_xray_problems problems;
	struct seam_xray_batch batch;
};


/* Count the calls of @stream.  Failure is in ledger->calls.error. */
void seam_ledger_count(struct seam_ledger *ledger,
		       const struct seam_trace *trace, uint32_t stream);

void seam_ledger_free(struct seam_ledger *ledger);

/* Longer calls first; equal ones in the order of the program; for qsort(). */
int seam_account_by_length(const void *a, const void *b);

/* Add up the list of @ledgers, sort and cut.  0 or -ENOMEM. */
int seam_account_merge(struct seam_account *account,
		       const struct seam_ledger *ledgers, size_t n_slowest);

#endif /* SEAM_ACCOUNT_LEDGER_H */
