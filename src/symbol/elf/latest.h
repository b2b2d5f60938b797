/* SPDX-License-Identifier: MIT */
/* latest.h - the newest value that was put under a key of two numbers */
#ifndef SEAM_LATEST_H
#define SEAM_LATEST_H

#include "base/array.h"
#include "base/index.h"

struct seam_latest_slot {
	uint64_t a, b;
	uint32_t value;
};

/* Zeroed is valid and empty. */
struct seam_latest {
	SEAM_ARRAY(struct seam_latest_slot) slots;
	struct seam_index index;
};

/* The value of (@a, @b), to read or change until the next put; NULL: none. */
uint32_t *seam_latest_find(struct seam_latest *latest, uint64_t a, uint64_t b);

/* 0 or -ENOMEM. */
int seam_latest_put(struct seam_latest *latest, uint64_t a, uint64_t b,
		    uint32_t value);

void seam_latest_fini(struct seam_latest *latest);

#endif /* SEAM_LATEST_H */
