/* SPDX-License-Identifier: MIT */
/* expected.c - all addresses, sorted; the contract is in expected.h */
#include "model/perf/expected.h"

#include <stdlib.h>

#include "base/radix_sort.h"
#include "model/guest/guest_merge.h"

#define MAX_WORDS ((size_t)4 << 20)

/* Kernel addresses and context markers are in the upper half. */
static bool is_user(uint64_t word)
{
	return word >> 63 == 0;
}

/*
 * After a marker comes the address that ran, then return addresses; the frames
 * of a VM's guest are no addresses.
 */
static size_t collect_chain(const uint64_t *words, size_t n_words,
			    struct seam_radix_item *items)
{
	bool is_call = false, is_guest = false;
	size_t n = 0;

	for (size_t i = 0; i < n_words; i++) {
		if (!is_user(words[i])) {
			is_call = words[i] == SEAM_GUEST_CALLER ||
				  words[i] == SEAM_CALLCHAIN_JOINED;
			is_guest = words[i] == SEAM_GUEST_FRAMES;
		} else if (!is_guest) {
			if (words[i] > 0)
				items[n++].key = words[i] - is_call;
			is_call = true;
		}
	}
	return n;
}

static size_t collect(const struct seam_callchains *chains,
		      struct seam_radix_item *items)
{
	size_t n = 0;

	for (size_t i = 0; i < chains->items.n; i++)
		n += collect_chain(chains->words.items +
				   chains->items.items[i].first,
				   chains->items.items[i].n, items + n);
	return n;
}

void seam_expected_make(struct seam_expected *expected,
			const struct seam_callchains *chains)
{
	size_t n = chains->words.n;
	struct seam_radix_item *items = n && n <= MAX_WORDS ?
		calloc(n, sizeof(*items)) : NULL;

	if (!items)
		return;
	n = collect(chains, items);
	if (n && !seam_radix_sort(items, n) &&
	    SEAM_ARRAY_RESERVE(&expected->addrs, n))
		for (size_t i = 0; i < n; i++)
			if (i == 0 || items[i].key != items[i - 1].key)
				expected->addrs.items[expected->addrs.n++] =
					items[i].key;
	free(items);
}

void seam_expected_announce(const struct seam_expected *expected,
			    struct seam_symbols *symbols, uint32_t module,
			    uint64_t begin, uint64_t end, uint64_t pgoff)
{
	const uint64_t *addrs = expected->addrs.items;
	size_t at = SEAM_ARRAY_SEARCH(i, expected->addrs.n, addrs[i] < begin);

	for (; at < expected->addrs.n && addrs[at] < end; at++)
		seam_symbols_expect(symbols, module, addrs[at] - begin + pgoff);
}

void seam_expected_fini(struct seam_expected *expected)
{
	free(expected->addrs.items);
	*expected = (struct seam_expected) { 0 };
}
