/* SPDX-License-Identifier: MIT */
/* cgroups.c - numbers, then names; see cgroups.h */
#include "model/perf/cgroups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"

uint32_t seam_cgroup_number(struct seam_cgroup_ids *ids, uint64_t id)
{
	uint32_t i;

	if (!id || id == ids->last)
		return id ? ids->last_number : 0;
	i = SEAM_INDEX_INTERN(&ids->index, seam_hash_u64(id), &ids->items, k,
			      ids->items.items[k] == id, id);
	if (i == SEAM_NONE)
		return SEAM_NONE;
	ids->last = id;
	ids->last_number = i + 1;
	return i + 1;
}

void seam_cgroup_ids_fini(struct seam_cgroup_ids *ids)
{
	free(ids->items.items);
	seam_index_fini(&ids->index);
	*ids = (struct seam_cgroup_ids) { 0 };
}

static uint32_t find_path(const struct seam_cgroup_paths *paths, uint64_t id)
{
	return SEAM_INDEX_FIND(&paths->index, seam_hash_u64(id), k,
			       paths->items.items[k].id == id);
}

int seam_cgroup_paths_put(struct seam_cgroup_paths *paths,
			  const struct seam_cgroup_path *path)
{
	uint32_t i = find_path(paths, path->id);

	if (i != SEAM_NONE)
		paths->items.items[i] = *path;
	else if (SEAM_INDEX_APPEND(&paths->index, seam_hash_u64(path->id),
				   &paths->items, *path) == SEAM_NONE)
		return -ENOMEM;
	return 0;
}

void seam_cgroup_paths_fini(struct seam_cgroup_paths *paths)
{
	free(paths->items.items);
	seam_index_fini(&paths->index);
	*paths = (struct seam_cgroup_paths) { 0 };
}

static uint32_t name_of(struct seam_profile *p, uint64_t id,
			const struct seam_cgroup_paths *paths)
{
	uint32_t i = find_path(paths, id);
	char text[40];

	if (i != SEAM_NONE)
		return paths->items.items[i].path;
	snprintf(text, sizeof(text), "[cgroup %" PRIu64 "]", id);
	return seam_strings_put(&p->strings, text);
}

int seam_cgroups_name(struct seam_profile *p, const struct seam_cgroup_ids *ids,
		      const struct seam_cgroup_paths *paths)
{
	struct seam_samples *s = &p->samples;
	uint32_t *names;
	int r = 0;

	if (!s->cgroup)
		return 0;
	names = calloc(ids->items.n + 1, sizeof(*names));
	for (size_t i = 0; names && i < ids->items.n; i++) {
		names[i + 1] = name_of(p, ids->items.items[i], paths);
		if (names[i + 1] == SEAM_NONE)
			r = -ENOMEM;
	}
	for (size_t i = 0; names && r == 0 && i < s->n; i++)
		s->cgroup[i] = names[s->cgroup[i]];
	r = names ? r : -ENOMEM;
	free(names);
	return r;
}

/* Fill with what @last has for the thread; then @last has what is there. */
static void spread(struct seam_samples *s, size_t i, uint32_t *last)
{
	if (s->cgroup[i])
		last[s->thread[i]] = s->cgroup[i];
	else
		s->cgroup[i] = last[s->thread[i]];
}

int seam_cgroups_spread(struct seam_profile *p)
{
	struct seam_samples *s = &p->samples;
	uint32_t *last;

	if (!s->cgroup)
		return 0;
	last = calloc(p->threads.n + 1, sizeof(*last));
	for (size_t i = 0; last && i < s->n; i++)
		spread(s, i, last);
	/* last[] has the newest now; the oldest come first from the end */
	for (size_t i = s->n; last && i-- > 0;)
		spread(s, i, last);
	free(last);
	return last ? 0 : -ENOMEM;
}
