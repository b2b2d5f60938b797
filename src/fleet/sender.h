/* SPDX-License-Identifier: MIT */
/*
 * sender.h - files of a spool to a store, in order, until they are there
 *
 * For a process of its own: a store that is slow, or is not there, delays
 * nothing else.  A file leaves the spool once the store has it.  After a
 * failure the sender waits, twice as long each time up to a minute, and tries
 * the same file again.  A file that the store will never take becomes a note,
 * which the next batch counts.
 *
 * It may be killed at any moment; another one goes on where it was.  A server
 * may still work on a request of a sender that was killed: the next one waits
 * until it has given that up.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "base/err.h"
#include "fleet/spool.h"
#include "fleet/store.h"

/*
 * In memory that several processes share: the sender writes, others read. Plain
 * counters; the text may be cut while it is replaced, and ends with a NUL.
 */
struct seam_sender_counts {
	_Atomic uint64_t n_sent, sent_bytes;
	_Atomic uint64_t n_refused;
	_Atomic uint64_t n_failed;	/* tries since the last success */
	_Atomic uint64_t last_sent_ns;	/* UTC; 0: never */
	_Atomic uint64_t n_missed;	/* sent, but not by OTLP (store.h) */
	char error[SEAM_ERR_TEXT];	/* of the last failure; "": none */
	char missed_error[SEAM_ERR_TEXT];	/* of .n_missed */
	_Atomic uint64_t error_ns;	/* UTC */
};

struct seam_sender {
	struct seam_fleet_place place;
	const char *spool;		/* folder */
	/* A byte for each new file; its end: send what there is, then return. */
	int wakeups;
	struct seam_sender_counts *counts;
	const sigset_t *mask;		/* of signals, while it waits */
};

/*
 * Send until the end of .wakeups, then what is left while that succeeds; or
 * until SIGTERM, which the caller has blocked and .mask has not: what is being
 * sent is finished.  0, or -errno: the spool cannot be used.
 */
int seam_sender_run(const struct seam_sender *sender, struct seam_err *err);

/* Give up all capabilities, and the way to get others.  Errors are ignored. */
void seam_sender_drop_rights(void);
