/* SPDX-License-Identifier: MIT */
/*
 * newest_records.h - records up to a number of bytes, the oldest dropped
 *
 * With --overwrite what is drained from rings is kept here in place of the file,
 * until a snapshot copies it: switches (switch_history.h), samples of samplers.
 *
 * Bounded: the memory is twice max_bytes and a record.  Threads: one.
 */
#pragma once

#include "base/array.h"

/* Zeroed with max_bytes is valid and empty. */
struct seam_newest_records {
	SEAM_ARRAY(uint8_t) bytes;	/* [first, n) are kept */
	size_t first;
	size_t max_bytes;
};

/* Add a record, of @size bytes with its header.  False: no memory. */
bool seam_newest_records_add(struct seam_newest_records *records,
			     const void *record, size_t size);

/*
 * After each record that was added, until it returns NULL: drop the oldest
 * record beyond max_bytes.  It is valid until the next call.
 */
const uint8_t *seam_newest_records_drop(struct seam_newest_records *records);

void seam_newest_records_fini(struct seam_newest_records *records);
