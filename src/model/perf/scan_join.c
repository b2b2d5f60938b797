/* SPDX-License-Identifier: MIT */
/* scan_join.c - renumber and append; the contract is in scan_join.h */
#include "model/perf/scan_join.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct scan_join {
	struct seam_samples *samples;
	struct seam_callchains *chains;
	struct seam_tasks *tasks;
};

/* Map the ids of one scan to common ones.  0 or -ENOMEM. */
static int renumber(const struct scan_join *j,
		    const struct seam_perf_scan *scan, uint32_t **keys,
		    uint32_t **chains)
{
	*keys = malloc((scan->tasks.keys.n + 1) * sizeof(**keys));
	*chains = malloc((scan->chains.items.n + 1) * sizeof(**chains));
	if (!*keys || !*chains)
		return -ENOMEM;
	for (size_t i = 0; i < scan->tasks.keys.n; i++) {
		const struct seam_task *task = &scan->tasks.keys.items[i];

		(*keys)[i] = seam_tasks_key(j->tasks, task->pid, task->tid);
		if ((*keys)[i] == SEAM_NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < scan->chains.items.n; i++) {
		const struct seam_callchain *c = &scan->chains.items.items[i];

		(*chains)[i] = seam_callchains_add(j->chains, c->pid,
				scan->chains.words.items + c->first, c->n);
		if ((*chains)[i] == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* @n_records: how many SAMPLE records are before those of @from. */
static bool append(struct seam_samples *to, const struct seam_samples *from,
		   const uint32_t *keys, const uint32_t *chains,
		   uint32_t n_records)
{
	size_t n = from->n;

	memcpy(to->time_ns + to->n, from->time_ns, n * sizeof(*to->time_ns));
	memcpy(to->cpu + to->n, from->cpu, n * sizeof(*to->cpu));
	memcpy(to->event + to->n, from->event, n * sizeof(*to->event));
	for (size_t i = 0; i < n; i++) {
		to->thread[to->n + i] = keys[from->thread[i]];
		to->stack[to->n + i] = chains[from->stack[i]];
		if (!seam_samples_set_weight(to, to->n + i,
					     seam_samples_weight(from, i)) ||
		    (from->record &&
		     !seam_samples_set_record(to, to->n + i,
					      n_records + from->record[i])))
			return false;
		if (from->vmstate && !seam_samples_set_vmstate(to, to->n + i,
				(enum seam_vmstate)from->vmstate[i]))
			return false;
	}
	to->n += n;
	return true;
}

static int join_one(const struct scan_join *j, struct seam_perf_scan *scan,
		    uint32_t n_records)
{
	uint32_t *keys = NULL, *chains = NULL;
	int r = renumber(j, scan, &keys, &chains);

	if (r == 0 && scan->samples.n &&
	    (!seam_samples_reserve(j->samples, scan->samples.n) ||
	     !append(j->samples, &scan->samples, keys, chains,
		     n_records)))
		r = -ENOMEM;
	free(keys);
	free(chains);
	seam_samples_fini(&scan->samples);
	seam_callchains_fini(&scan->chains);
	return r;
}

/* What the first scan has is moved as it is: its ids become the common ones. */
int seam_scan_join(struct seam_perf_scan *scans, size_t n,
		   struct seam_samples *samples,
		   struct seam_callchains *chains, struct seam_tasks *tasks)
{
	const struct scan_join j = { samples, chains, tasks };
	uint32_t n_records = 0;
	int r = 0;

	assert(samples->n == 0 && chains->items.n == 0 && tasks->keys.n == 0);
	*samples = scans[0].samples;
	scans[0].samples = (struct seam_samples) { 0 };
	*chains = scans[0].chains;
	scans[0].chains = (struct seam_callchains) { 0 };
	tasks->keys = scans[0].tasks.keys;
	tasks->key_index = scans[0].tasks.key_index;
	scans[0].tasks = (struct seam_tasks) { 0 };	/* had only keys */
	for (size_t i = 1; r == 0 && i < n; i++) {
		scans[i].first_sample = samples->n;
		n_records += scans[i - 1].n_sample_records;
		r = join_one(&j, &scans[i], n_records);
	}
	return r;
}
