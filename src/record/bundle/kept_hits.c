/* SPDX-License-Identifier: MIT */
/* kept_hits.c - join pages of samples with mappings; see kept_hits.h */
#include "record/bundle/kept_hits.h"

#include "base/hash.h"
#include "wire/perf/perf_sample.h"

#include <linux/perf_event.h>
#include <stdlib.h>

enum {
	PAGE_BITS = 12,
	MAX_PARENTS = 64,
	/* Comparisons of a page with a mapping: well under a second. */
	MAX_STEPS = 1 << 28,
};

static void add_fork(struct seam_kept_hits *hits,
		     const struct seam_perf_task *task)
{
	if (task->pid == task->ppid)
		return;		/* a thread */
	if (hits->forks.n >= SEAM_KEPT_HITS_MAX ||
	    !SEAM_ARRAY_ADD(&hits->forks, (struct seam_kept_hits_fork) {
			    .pid = task->pid, .parent = task->ppid }))
		hits->n_left_out++;
}

void seam_kept_hits_sideband(struct seam_kept_hits *hits,
			     struct seam_kept_files *kept,
			     const struct seam_perf_sideband *record)
{
	const struct seam_perf_mapping *m = seam_kept_files_mapping_of(record);
	struct seam_kept_hits_mapping *slot;
	struct seam_kept_file *file;

	if (record->type == PERF_RECORD_FORK)
		add_fork(hits, &record->task);
	if (!m || m->filename[0] != '/' || m->filename[1] == '/')
		return;
	slot = hits->maps.n < SEAM_KEPT_HITS_MAX ?
	       SEAM_ARRAY_PUSH(&hits->maps) : NULL;
	if (!slot) {
		hits->n_left_out++;
		return;
	}
	file = seam_kept_files_find(kept, m);
	*slot = (struct seam_kept_hits_mapping) {
		.pid = m->pid, .begin = m->addr, .end = m->addr + m->len,
		.file = file ? (uint32_t)(file - kept->files.items) :
			SEAM_NONE,
	};
}

void seam_kept_hits_address(struct seam_kept_hits *hits, int32_t pid,
			    uint64_t addr)
{
	uint64_t page = addr >> PAGE_BITS;
	uint64_t hash = seam_hash_u64(page ^ (uint64_t)(uint32_t)pid << 40);
	const struct seam_kept_hits_page found = { .pid = pid, .page = page };

	if (SEAM_INDEX_FIND(&hits->page_index, hash, i,
			    hits->pages.items[i].pid == pid &&
			    hits->pages.items[i].page == page) != SEAM_NONE)
		return;
	if (hits->pages.n >= SEAM_KEPT_HITS_MAX ||
	    SEAM_INDEX_APPEND(&hits->page_index, hash, &hits->pages, found) ==
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
		seam_kept_hits_address(hits, sample.pid, sample.ip);
	for (size_t i = 0; i < sample.callchain.n; i++) {
		uint64_t addr = seam_perf_u64(&sample.callchain, i);

		if (is_user(addr))
			seam_kept_hits_address(hits, sample.pid, addr);
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct seam_kept_hits_mapping *x = a, *y = b;

	return SEAM_COMPARE(x->pid, y->pid);
}

/* Mark the files of @pid that @page is in.  False: there is no mapping. */
static bool mark_of(const struct seam_kept_hits *hits, struct seam_kept_files *kept,
		    int32_t pid, uint64_t page, uint64_t *steps)
{
	uint64_t begin = page << PAGE_BITS, end = (page + 1) << PAGE_BITS;
	bool found = false;
	/* the first mapping of @pid: they are sorted by pid */
	size_t i = SEAM_ARRAY_SEARCH(k, hits->maps.n,
				     hits->maps.items[k].pid < pid);

	for (; i < hits->maps.n; i++) {
		const struct seam_kept_hits_mapping *m = &hits->maps.items[i];

		if (m->pid != pid || ++*steps > MAX_STEPS)
			break;
		if (m->begin >= end || m->end <= begin)
			continue;
		found = true;
		if (m->file != SEAM_NONE)
			kept->files.items[m->file].is_hit = true;
	}
	return found;
}

/* By the last fork, because pids are used again; 0: there is none. */
static int32_t parent_of(const struct seam_kept_hits *hits, int32_t pid,
			 uint64_t *steps)
{
	for (size_t i = hits->forks.n; i-- > 0 && ++*steps <= MAX_STEPS;)
		if (hits->forks.items[i].pid == pid)
			return hits->forks.items[i].parent;
	return 0;
}

void seam_kept_hits_mark(struct seam_kept_hits *hits,
			 struct seam_kept_files *kept)
{
	uint64_t steps = 0;

	hits->n_unjoined = 0;
	SEAM_ARRAY_SORT(&hits->maps, by_pid);
	for (size_t i = 0; i < hits->pages.n; i++) {
		const struct seam_kept_hits_page *p = &hits->pages.items[i];
		int32_t pid = p->pid;

		for (int up = 0; pid > 0 && up < MAX_PARENTS &&
		     !mark_of(hits, kept, pid, p->page, &steps); up++)
			pid = parent_of(hits, pid, &steps);
		if (steps > MAX_STEPS) {
			hits->n_unjoined = hits->pages.n - i;
			return;
		}
	}
}

void seam_kept_hits_fini(struct seam_kept_hits *hits)
{
	free(hits->maps.items);
	free(hits->pages.items);
	free(hits->forks.items);
	seam_index_fini(&hits->page_index);
	*hits = (struct seam_kept_hits) { 0 };
}
