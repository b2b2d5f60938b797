/* SPDX-License-Identifier: MIT */
/*
 * guest_ids.h - functions that were seen, their ids and names
 *
 * A table without locks: handlers of any thread add to it, nothing is removed.
 * It is mapped beforehand, and a page of it costs memory when it is first
 * used: about 1.3 KiB a function.
 *
 * A function is found by its key: address, and words that change when the
 * address is used again for another function.  Two threads that see a new
 * function at the same moment may give it two ids: both have its name.
 */
#ifndef SEAM_GUEST_IDS_H
#define SEAM_GUEST_IDS_H

#include "seam/guest.h"
#include "traced/guest/guest_sample.h"

/* Once, before the others.  0, -ENOMEM. */
int seam_guest_ids_init(void);

/* The id of @key, or 0. */
uint32_t seam_guest_ids_find(const struct seam_guest_key *key);

/* Whether it has no name of its own, and another attempt is worth it. */
bool seam_guest_ids_is_nameless(uint32_t id);

/* A new id; 0 where there is no room for it. */
uint32_t seam_guest_ids_add(const struct seam_guest_key *key,
			    const struct seam_guest_text *text);

/* Give a nameless function the name in @text, if that has one; once. */
void seam_guest_ids_rename(uint32_t id, const struct seam_guest_text *text);

/* Whether it is to be announced; it counts as announced then. */
bool seam_guest_ids_take_fresh(uint32_t id);

#endif /* SEAM_GUEST_IDS_H */
