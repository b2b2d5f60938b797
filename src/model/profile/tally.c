/* SPDX-License-Identifier: MIT */
/*
 * tally.c - one pass over the samples; the contract is in tally.h
 *
 * Nearly all stacks belong to one group only, so an array has the last tally of
 * each stack; a hash table is searched only where that is of another group.
 */
#include "model/profile/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"

const char *seam_group_text(const struct seam_profile *profile,
			    enum seam_group group, uint32_t id)
{
	switch (group) {
	case SEAM_GROUP_COMM:
		return seam_profile_text(profile, id);
	case SEAM_GROUP_THREAD:
		return seam_profile_text(profile,
					 profile->threads.items[id].name);
	case SEAM_GROUP_PROCESS:
		return seam_profile_text(profile,
					 profile->processes.items[id].name);
	case SEAM_GROUP_CPU:
		return "CPU";
	case SEAM_GROUP_VMSTATE:
		return id < SEAM_N_VMSTATES ?
		       seam_vmstate_name((enum seam_vmstate)id) : "none";
	case SEAM_GROUP_WAIT:
	case SEAM_GROUP_WAKER:
	case SEAM_GROUP_CGROUP:
		return id == SEAM_GROUP_RAN ? "running" : !id ? "not known" :
		       seam_profile_text(profile, id);
	case SEAM_GROUP_RUNNING:
		return "threads";
	case SEAM_GROUP_HOST:
	case SEAM_GROUP_SERVICE:
		return id ? seam_profile_text(profile, id) : "not known";
	case SEAM_GROUP_NONE:
		break;
	}
	return "all";
}

int32_t seam_group_number(const struct seam_profile *profile,
			  enum seam_group group, uint32_t id)
{
	return group == SEAM_GROUP_THREAD ? profile->threads.items[id].tid :
	       group == SEAM_GROUP_PROCESS ? profile->processes.items[id].pid :
	       (group == SEAM_GROUP_CPU && id != UINT16_MAX) ||
	       (group == SEAM_GROUP_RUNNING && id) ? (int32_t)id : -1;
}

/*
 * The name of group @id: "name", "name TID", "name PID", or "all" for
 * SEAM_GROUP_NONE; the number is not repeated where the name ends with it.
 * Returns the profile's text or @buf.
 */
static const char *group_name(const struct seam_profile *profile,
			      enum seam_group group, uint32_t id,
			      char buf[SEAM_GROUP_NAME])
{
	const char *name = seam_group_text(profile, group, id);
	size_t size = strlen(name), digits;
	char text[16];

	if (group == SEAM_GROUP_NONE || group == SEAM_GROUP_COMM ||
	    group == SEAM_GROUP_VMSTATE || group == SEAM_GROUP_WAIT ||
	    group == SEAM_GROUP_WAKER || group == SEAM_GROUP_CGROUP ||
	    group == SEAM_GROUP_HOST || group == SEAM_GROUP_SERVICE)
		return name;
	digits = (size_t)snprintf(text, sizeof(text), " %" PRId32,
				  seam_group_number(profile, group, id));
	if (group == SEAM_GROUP_CPU && id == UINT16_MAX)
		return "CPU unknown";
	if (size >= digits && strcmp(name + size - digits, text) == 0)
		return name;
	snprintf(buf, SEAM_GROUP_NAME, "%.*s%s", SEAM_GROUP_NAME - 17,
		 *name ? name : group == SEAM_GROUP_THREAD ? "thread" :
		 "process", text);
	return buf;
}

struct tally_pass {
	const struct seam_selected *selected;
	struct seam_tallies *tallies;
	enum seam_group group;
	struct seam_groups *groups;	/* NULL, or used instead of group */
	uint32_t *last;		/* by stack: its last tally; SEAM_NONE */
	struct seam_index index;/* by (group, stack); no entry for GROUP_NONE */
};

static const struct seam_process *
process_of(const struct seam_profile *profile, uint32_t thread)
{
	return &profile->processes.items[profile->threads.items[thread].process];
}

static uint32_t id_of(const struct seam_profile *profile, size_t sample,
		      enum seam_group group)
{
	uint32_t thread = profile->samples.thread[sample];

	switch (group) {
	case SEAM_GROUP_NONE:
		break;
	case SEAM_GROUP_COMM:
		return seam_samples_comm(profile, sample);
	case SEAM_GROUP_THREAD:
		return thread;
	case SEAM_GROUP_PROCESS:
		return profile->threads.items[thread].process;
	case SEAM_GROUP_CPU:
		return profile->samples.cpu[sample];
	case SEAM_GROUP_VMSTATE:
		return seam_samples_vmstate(&profile->samples, sample);
	case SEAM_GROUP_WAIT:
	case SEAM_GROUP_WAKER:
		return !profile->events.items[profile->samples.event[sample]]
		       .is_wait ? SEAM_GROUP_RAN : group == SEAM_GROUP_WAIT ?
		       seam_samples_wait(&profile->samples, sample) :
		       seam_samples_waker(&profile->samples, sample);
	case SEAM_GROUP_CGROUP:
		return seam_samples_cgroup(&profile->samples, sample);
	case SEAM_GROUP_RUNNING:
		return seam_samples_running(&profile->samples, sample);
	case SEAM_GROUP_HOST:
	case SEAM_GROUP_SERVICE:
		return group == SEAM_GROUP_HOST ?
		       process_of(profile, thread)->host :
		       process_of(profile, thread)->service;
	}
	return 0;
}

static uint32_t group_of(const struct tally_pass *p, size_t sample)
{
	const struct seam_profile *profile = p->selected->profile;
	struct seam_group_ids ids = { 0 };

	if (!p->groups)
		return id_of(profile, sample, p->group);
	for (size_t i = 0; i < p->groups->n_kinds; i++)
		ids.items[i] = id_of(profile, sample, p->groups->kinds[i]);
	return SEAM_INDEX_INTERN(&p->groups->index,
		seam_hash_bytes(&ids, sizeof(ids), 0), p->groups, k,
		memcmp(&p->groups->items[k], &ids, sizeof(ids)) == 0, ids);
}

static uint32_t find(struct tally_pass *p, uint32_t stack, uint32_t group)
{
	uint64_t hash = seam_hash_u64((uint64_t)group << 32 | stack);
	const struct seam_tally *tallies = p->tallies->items;
	uint32_t id = SEAM_INDEX_FIND(&p->index, hash, i,
				      tallies[i].stack == stack &&
				      tallies[i].group == group);
	struct seam_tally new = { .stack = stack, .group = group };

	if (id != SEAM_NONE)
		return id;
	if (p->group != SEAM_GROUP_NONE)
		return SEAM_INDEX_APPEND(&p->index, hash, p->tallies, new);
	id = (uint32_t)p->tallies->n;
	return SEAM_ARRAY_ADD(p->tallies, new) ? id : SEAM_NONE;
}

static int count(struct tally_pass *p, size_t sample)
{
	uint32_t stack = seam_selected_stack(p->selected, sample);
	uint32_t group = group_of(p, sample);
	uint32_t id = p->last[stack];

	if (group == SEAM_NONE)
		return -ENOMEM;
	if (id == SEAM_NONE || p->tallies->items[id].group != group) {
		id = find(p, stack, group);
		if (id == SEAM_NONE)
			return -ENOMEM;
		p->last[stack] = id;
	}
	p->tallies->items[id].samples +=
		seam_samples_count(&p->selected->profile->samples, sample);
	p->tallies->items[id].weight +=
		seam_selected_weight(p->selected, sample);
	return 0;
}

static int by_group_and_stack(const void *a, const void *b)
{
	const struct seam_tally *x = a, *y = b;

	return SEAM_COMPARE(x->group, y->group) ?:
	       SEAM_COMPARE(x->stack, y->stack);
}

static int make(struct tally_pass p, uint32_t event)
{
	const struct seam_samples *samples = &p.selected->profile->samples;
	size_t n_stacks = p.selected->n_stacks;
	struct seam_tallies *tallies = p.tallies;
	int rc = 0;

	*tallies = (struct seam_tallies) { 0 };
	p.last = malloc(n_stacks * sizeof(*p.last));
	if (!p.last)
		return -ENOMEM;
	memset(p.last, 0xff, n_stacks * sizeof(*p.last));
	for (size_t i = 0; i < samples->n && !rc; i++)
		if ((event == SEAM_NONE || samples->event[i] == event) &&
		    seam_selected_has(p.selected, i))
			rc = count(&p, i);
	free(p.last);
	seam_index_fini(&p.index);
	if (rc) {
		free(tallies->items);
		*tallies = (struct seam_tallies) { 0 };
		return rc;
	}
	SEAM_ARRAY_SORT(tallies, by_group_and_stack);
	for (size_t i = 0; i < tallies->n; i++) {
		tallies->samples += tallies->items[i].samples;
		tallies->weight += tallies->items[i].weight;
	}
	return 0;
}

int seam_tallies_make(struct seam_tallies *tallies,
		      const struct seam_selected *selected, uint32_t event,
		      enum seam_group group)
{
	return make((struct tally_pass) {
		.selected = selected, .tallies = tallies, .group = group,
	}, event);
}

int seam_tallies_make_by(struct seam_tallies *tallies,
			 struct seam_groups *groups,
			 const struct seam_selected *selected, uint32_t event)
{
	return make((struct tally_pass) {
		.selected = selected, .tallies = tallies, .groups = groups,
		.group = SEAM_GROUP_COMM,	/* of any kind but none */
	}, event);
}

int seam_tallies_name(struct seam_tallies *tallies,
		      const struct seam_profile *profile, enum seam_group group,
		      uint32_t (*put)(void *context, const char *name),
		      void *context)
{
	uint32_t last = SEAM_NONE, name = SEAM_NONE;
	char buf[SEAM_GROUP_NAME];

	for (size_t i = 0; i < tallies->n; i++) {
		struct seam_tally *tally = &tallies->items[i];

		if (i == 0 || tally->group != last)
			name = put(context, group_name(profile, group,
						tally->group, buf));
		if (name == SEAM_NONE)
			return -ENOMEM;
		last = tally->group;
		tally->group = name;
	}
	return 0;
}

void seam_groups_fini(struct seam_groups *groups)
{
	free(groups->items);
	seam_index_fini(&groups->index);
	groups->items = NULL;
	groups->n = groups->cap = 0;
}
