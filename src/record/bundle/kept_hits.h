/* SPDX-License-Identifier: MIT */
/*
 * kept_hits.h - the mapped files that samples and calls are in (--keep-files)
 *
 * Collects the mappings of each process and the pages of addresses in its
 * samples, call chains and traced functions, and joins the two at the end.
 * Times are ignored, and the mappings of a process also count for its children:
 * this may copy files that no sample is in, but misses none.
 *
 * Threads: one.
 */
#ifndef SEAM_KEPT_HITS_H
#define SEAM_KEPT_HITS_H

#include "record/bundle/kept_files.h"

/* The maximum of pages, of mappings and of forks; more are left out. */
enum { SEAM_KEPT_HITS_MAX = 1 << 20 };

struct seam_kept_hits_page {
	int32_t pid;
	uint64_t page;
};

struct seam_kept_hits_fork {
	int32_t pid, parent;
};

struct seam_kept_hits_mapping {
	int32_t pid;
	uint32_t file;		/* index in kept_files; SEAM_NONE: not in it */
	uint64_t begin, end;
};

/* Zeroed is valid and empty. */
struct seam_kept_hits {
	SEAM_ARRAY(struct seam_kept_hits_mapping) maps;
	SEAM_ARRAY(struct seam_kept_hits_page) pages;
	struct seam_index page_index;
	SEAM_ARRAY(struct seam_kept_hits_fork) forks;
	uint64_t n_left_out;	/* pages and mappings beyond the maximum */
	uint64_t n_unjoined;	/* pages beyond it, when last marked */
};

/* Process a side-band record, after seam_kept_files_sideband(). */
void seam_kept_hits_sideband(struct seam_kept_hits *hits,
			     struct seam_kept_files *kept,
			     const struct seam_perf_sideband *record);

/* Process a sample of an event with @attr; @payload follows its header. */
void seam_kept_hits_sample(struct seam_kept_hits *hits,
			   const struct seam_perf_attr *attr,
			   struct seam_bytes payload);

/* Process an address of a function of process @pid whose calls are recorded. */
void seam_kept_hits_address(struct seam_kept_hits *hits, int32_t pid,
			    uint64_t addr);

/* Set is_hit of the files of @kept that samples and functions are in. */
void seam_kept_hits_mark(struct seam_kept_hits *hits,
			 struct seam_kept_files *kept);

void seam_kept_hits_fini(struct seam_kept_hits *hits);

#endif /* SEAM_KEPT_HITS_H */
