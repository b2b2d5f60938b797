/* SPDX-License-Identifier: MIT */
/*
 * expected.h - the addresses that will be looked up in a file, in advance
 *
 * Files are read by another process, and a look-up costs a message there and
 * one back.  All addresses of a recording are known before the first is
 * resolved; those in a mapping are sent with the first look-up in its file.
 * Which process had the file mapped there is not checked: an address too many
 * costs a look-up and nothing else.
 */
#ifndef SEAM_EXPECTED_H
#define SEAM_EXPECTED_H

#include "model/perf/callchains.h"
#include "symbol/symbols.h"

/* Zeroed is valid and empty. */
struct seam_expected {
	SEAM_ARRAY(uint64_t) addrs;	/* sorted, each once */
};

/*
 * The user addresses of @chains, as they are looked up: return addresses one
 * byte earlier.  None when there are more than 4 million or memory runs out,
 * which costs time only.
 */
void seam_expected_make(struct seam_expected *expected,
			const struct seam_callchains *chains);

/*
 * Announce the addresses in [@begin, @end), where @module is mapped from offset
 * @pgoff on.
 */
void seam_expected_announce(const struct seam_expected *expected,
			    struct seam_symbols *symbols, uint32_t module,
			    uint64_t begin, uint64_t end, uint64_t pgoff);

void seam_expected_fini(struct seam_expected *expected);

#endif /* SEAM_EXPECTED_H */
