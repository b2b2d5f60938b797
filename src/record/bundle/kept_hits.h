/* SPDX-License-Identifier: MIT */
/*
 * kept_hits.h - the mapped files that samples and calls are in (--keep-files)
 *
 * Collects the addresses at which files are mapped and the pages of addresses
 * in samples, call chains and traced functions, and joins the two at the end.
 * Processes and times are ignored: this may copy a file that no sample is in,
 * where one is in another file at the same address of another process, but
 * misses none.
 *
 * Threads: one.
 */
#ifndef SEAM_KEPT_HITS_H
#define SEAM_KEPT_HITS_H

#include "record/bundle/kept_files.h"

/* The maximum of pages, and of mappings; more are left out. */
enum { SEAM_KEPT_HITS_MAX = 1 << 20 };

struct seam_kept_hits_mapping {
	uint32_t file;		/* index in kept_files */
	uint64_t begin, end;
};

/* Zeroed is valid and empty. */
struct seam_kept_hits {
	SEAM_ARRAY(struct seam_kept_hits_mapping) maps;
	SEAM_ARRAY(uint64_t) pages;
	struct seam_index page_index;
	uint64_t n_left_out;	/* pages and mappings beyond the maximum */
};

/* Process a side-band record, after seam_kept_files_sideband(). */
void seam_kept_hits_sideband(struct seam_kept_hits *hits,
			     struct seam_kept_files *kept,
			     const struct seam_perf_sideband *record);

/* Process a sample of an event with @attr; @payload follows its header. */
void seam_kept_hits_sample(struct seam_kept_hits *hits,
			   const struct seam_perf_attr *attr,
			   struct seam_bytes payload);

/* Process an address of a function whose calls are recorded. */
void seam_kept_hits_address(struct seam_kept_hits *hits, uint64_t addr);

/* Set is_hit of the files of @kept that samples and functions are in. */
void seam_kept_hits_mark(const struct seam_kept_hits *hits,
			 struct seam_kept_files *kept);

void seam_kept_hits_fini(struct seam_kept_hits *hits);

#endif /* SEAM_KEPT_HITS_H */
