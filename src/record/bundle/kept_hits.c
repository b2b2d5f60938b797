/* SPDX-License-Identifier: MIT */
/* kept_hits.c - join pages of samples with mappings; see kept_hits.h */
#include "record/bundle/kept_hits.h"

#include "base/hash.h"
#include "wire/perf/perf_sample.h"

#include <stdlib.h>

enum { PAGE_BITS = 12 };

void seam_kept_hits_sideband(struct seam_kept_hits *hits,
			     struct seam_kept_files *kept,
			     const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *m = seam_kept_files_mapping_of(record);
	const struct seam_kept_file *file =
		m ? seam_kept_files_find(kept, m) : NULL;

	if (!file)
		return;
	if (hits->maps.n >= SEAM_KEPT_HITS_MAX ||
	    !SEAM_ARRAY_ADD(&hits->maps, (struct seam_kept_hits_mapping) {
			    .begin = m->addr, .end = m->addr + m->len,
			    .file = (uint32_t)(file - kept->files.items) }))
		hits->n_left_out++;
}

void seam_kept_hits_address(struct seam_kept_hits *hits, uint64_t addr)
{
	uint64_t page = addr >> PAGE_BITS;
	uint64_t hash = seam_hash_u64(page);

	if (SEAM_INDEX_FIND(&hits->page_index, hash, i,
			    hits->pages.items[i] == page) != SEAM_NONE)
		return;
	if (hits->pages.n >= SEAM_KEPT_HITS_MAX ||
	    SEAM_INDEX_APPEND(&hits->page_index, hash, &hits->pages, page) ==
	    SEAM_NONE)
		hits->n_left_out++;
}

/* False: of the kernel, or a context marker in a call chain. */
static bool is_user(uint64_t addr)
{
	return addr < UINT64_C(1) << 56;
}

void seam_kept_hits_sample(struct seam_kept_hits *hits,
			   const struct seam_perf_attr *attr,
			   struct seam_bytes payload)
{
	struct seam_perf_sample sample;

	if (seam_perf_sample_read(attr, SEAM_NATIVE, payload, &sample) < 0)
		return;
	if (is_user(sample.ip))
		seam_kept_hits_address(hits, sample.ip);
	for (size_t i = 0; i < sample.callchain.n; i++) {
		uint64_t addr = seam_perf_u64(&sample.callchain, i);

		if (is_user(addr))
			seam_kept_hits_address(hits, addr);
	}
}

static int by_number(const void *a, const void *b)
{
	return SEAM_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

void seam_kept_hits_mark(const struct seam_kept_hits *hits,
			 struct seam_kept_files *kept)
{
	SEAM_ARRAY(uint64_t) pages = { 0 };
	bool has_all = SEAM_ARRAY_EXTEND(&pages, hits->pages.items,
					 hits->pages.n);

	SEAM_ARRAY_SORT(&pages, by_number);
	for (size_t i = 0; i < hits->maps.n; i++) {
		const struct seam_kept_hits_mapping *m = &hits->maps.items[i];
		size_t first = SEAM_ARRAY_SEARCH(k, pages.n, pages.items[k] <
						 m->begin >> PAGE_BITS);

		/* without memory all were hit: none is missed */
		kept->files.items[m->file].is_hit |= !has_all ||
			(first < pages.n &&
			 pages.items[first] << PAGE_BITS < m->end);
	}
	free(pages.items);
}

void seam_kept_hits_fini(struct seam_kept_hits *hits)
{
	free(hits->maps.items);
	free(hits->pages.items);
	seam_index_fini(&hits->page_index);
	*hits = (struct seam_kept_hits) { 0 };
}
