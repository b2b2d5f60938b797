/* SPDX-License-Identifier: MIT */
/* stack_joins.c - a table of callers; the contract is in stack_joins.h */
#include "model/perf/stack_joins.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "wire/perf/unwound.h"

#define USER ((uint64_t)PERF_CONTEXT_USER)
/* In a place: code of a JIT, by the number of its object. */
#define IS_JIT (UINT64_C(1) << 32)

/* A frame: its address, what code is there, its CFA. */
struct at_cfa {
	uint64_t pc, code;
	uint64_t cfa;		/* 0: it is the root */
};

/* From a frame to its caller, in one thread. */
struct edge {
	struct at_cfa from, to;
	uint32_t thread;
	uint32_t n;		/* samples, up to UINT32_MAX */
	bool is_forbidden;
};

/* A return address in one process, and whether it has several callers. */
struct call_site {
	uint64_t pc, code, caller;
	uint32_t space;
	bool has_several;
};

/* All samples with one stack, while the code at its addresses is the same. */
struct distinct {
	const struct seam_stack_walk *walk;	/* the first */
	uint32_t thread, chain, space;
	uint32_t n;		/* samples */
	uint32_t joined;	/* chain; SEAM_NONE: none */
	int32_t pid;
	uint64_t time_ns;	/* of the first */
	uint64_t from_ns, to_ns;
};

struct stack_joins {
	struct seam_profile *profile;
	struct seam_callchains *chains;
	const struct seam_tasks *tasks;
	struct seam_jit_code *jit;
	struct seam_stack_walks *walks;
	struct seam_task_at at;
	bool *is_cut;			/* by task key */
	SEAM_ARRAY(struct distinct) stacks;
	struct seam_index stack_index;
	SEAM_ARRAY(struct edge) edges;
	struct seam_index edge_index;
	SEAM_ARRAY(struct call_site) sites;
	struct seam_index site_index;
	SEAM_ARRAY(uint64_t) words;	/* of a joined chain */
	struct at_cfa frames[SEAM_STACK_JOIN_FRAMES];	/* of one stack */
	size_t n;
};

/* ---- places ---- */

/* The code at @addr, and from when to when it is there. */
static uint64_t code_at(const struct stack_joins *j, const struct distinct *d,
			uint64_t addr, uint64_t *from_ns, uint64_t *to_ns)
{
	struct seam_jit_location jit;
	const struct seam_vma *vma = seam_spaces_find(&j->tasks->spaces,
						      d->space, addr,
						      d->time_ns, from_ns,
						      to_ns);

	if (j->jit && seam_jit_code_find_object(j->jit, d->pid, addr,
						d->time_ns, &jit))
		return IS_JIT | jit.object;
	return vma ? (uint64_t)(vma - j->tasks->spaces.vmas.items) : SEAM_NONE;
}

static struct at_cfa place_of(const struct stack_joins *j,
			     const struct distinct *d, uint64_t pc,
			     uint64_t cfa)
{
	uint64_t from_ns, to_ns;

	return (struct at_cfa) {
		.pc = pc, .cfa = cfa,
		.code = code_at(j, d, pc - 1, &from_ns, &to_ns),
	};
}

/* The user part of a chain; NULL: none. */
static const uint64_t *user_part(const struct stack_joins *j, uint32_t chain,
				 size_t *n)
{
	const struct seam_callchain *c = &j->chains->items.items[chain];
	const uint64_t *words = j->chains->words.items + c->first;
	size_t i = 0;

	while (i < c->n && words[i] != USER)
		i++;
	*n = i < c->n ? c->n - i - 1 : 0;
	return i < c->n ? words + i + 1 : NULL;
}

/*
 * The frames of @d that have a CFA, and its root, to j->frames.  Returns how
 * many frames were walked; 0: its record does not fit its chain.
 */
static uint64_t read_frames(struct stack_joins *j, const struct distinct *d)
{
	const struct seam_bytes raw = { d->walk->raw, d->walk->raw_bytes };
	struct seam_unwound unwound;
	size_t n_user;
	const uint64_t *user = user_part(j, d->chain, &n_user);

	j->n = 0;
	if (!user || seam_unwound_read(raw, &unwound) ||
	    unwound.n_frames > n_user || unwound.n_frames == 0 ||
	    unwound.n_frames > SEAM_STACK_JOIN_FRAMES)
		return 0;
	for (; j->n < unwound.n_cfas; j->n++)
		j->frames[j->n] = place_of(j, d, user[j->n],
					   seam_unwound_next(&unwound));
	/* what the kernel's chain added has no CFAs */
	if (unwound.end == SEAM_STACK_COMPLETE && j->n + 1 == n_user) {
		j->frames[j->n] = place_of(j, d, user[j->n], 0);
		j->n++;
	}
	return unwound.n_frames;
}

/* ---- distinct stacks ---- */

/* Narrow the span of @d to that in which its code is the same. */
static void set_span(const struct stack_joins *j, struct distinct *d)
{
	size_t n;
	const uint64_t *user = user_part(j, d->chain, &n);

	d->from_ns = 0;
	d->to_ns = UINT64_MAX;
	if (j->jit)
		seam_jit_code_stable_span(j->jit, d->pid, d->time_ns,
					  &d->from_ns, &d->to_ns);
	for (size_t i = 1; i < n; i++) {
		uint64_t from_ns = 0, to_ns = UINT64_MAX;

		code_at(j, d, user[i] - 1, &from_ns, &to_ns);
		d->from_ns = from_ns > d->from_ns ? from_ns : d->from_ns;
		d->to_ns = to_ns < d->to_ns ? to_ns : d->to_ns;
	}
}

/* Find or add the stack of @walk. */
static int add_stack(struct stack_joins *j, struct seam_stack_walk *walk)
{
	const struct seam_samples *s = &j->profile->samples;
	uint64_t time_ns = s->time_ns[walk->sample], hash;
	uint32_t chain = s->stack[walk->sample], id;
	const struct distinct *d;
	struct distinct new = {
		.walk = walk, .chain = chain, .joined = SEAM_NONE,
		.time_ns = time_ns, .pid = j->chains->items.items[chain].pid,
	};

	if (!seam_task_at_holds(&j->at, s->thread[walk->sample], time_ns))
		j->at = seam_tasks_find(j->tasks, s->thread[walk->sample],
					time_ns);
	hash = seam_hash_bytes(walk->raw, walk->raw_bytes,
			       seam_hash_add(j->at.thread, chain));
	d = j->stacks.items;
	id = SEAM_INDEX_FIND(&j->stack_index, hash, i,
		d[i].thread == j->at.thread && d[i].chain == chain &&
		d[i].walk->raw_bytes == walk->raw_bytes &&
		memcmp(d[i].walk->raw, walk->raw, walk->raw_bytes) == 0 &&
		d[i].from_ns <= time_ns && time_ns < d[i].to_ns);
	if (id == SEAM_NONE) {
		new.thread = j->at.thread;
		new.space = j->at.space;
		set_span(j, &new);
		id = SEAM_INDEX_APPEND(&j->stack_index, hash, &j->stacks, new);
	}
	walk->stack = id;
	if (id == SEAM_NONE)
		return -ENOMEM;
	j->stacks.items[id].n++;
	return 0;
}

/* ---- the table ---- */

/* The hash of @at is *@hash. */
static struct call_site *find_site(const struct stack_joins *j, uint32_t space,
				   const struct at_cfa *at, uint64_t *hash)
{
	const struct call_site *s = j->sites.items;
	uint32_t id;

	*hash = seam_hash_add(at->pc, at->code << 32 | space);
	id = SEAM_INDEX_FIND(&j->site_index, *hash, i,
			     s[i].space == space && s[i].pc == at->pc &&
			     s[i].code == at->code);
	return id == SEAM_NONE ? NULL : &j->sites.items[id];
}

/* A frame at @at was called from @caller. */
static int add_site(struct stack_joins *j, uint32_t space,
		    const struct at_cfa *at, uint64_t caller)
{
	uint64_t hash;
	struct call_site *site = find_site(j, space, at, &hash);

	if (site) {
		site->has_several |= site->caller != caller;
		return 0;
	}
	return SEAM_INDEX_APPEND(&j->site_index, hash, &j->sites,
				 (struct call_site) {
					.pc = at->pc, .code = at->code,
					.caller = caller, .space = space }) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

static uint64_t hash_of(uint32_t thread, const struct at_cfa *from)
{
	return seam_hash_add(seam_hash_add(from->pc, from->cfa),
			     from->code << 32 | thread);
}

static struct edge *find_edge(const struct stack_joins *j, uint32_t thread,
			      const struct at_cfa *from)
{
	const struct edge *e = j->edges.items;
	uint32_t id = SEAM_INDEX_FIND(&j->edge_index, hash_of(thread, from), i,
		e[i].thread == thread && e[i].from.pc == from->pc &&
		e[i].from.cfa == from->cfa && e[i].from.code == from->code);

	return id == SEAM_NONE ? NULL : &j->edges.items[id];
}

/* @n samples have @to as the caller of @from. */
static int add_edge(struct stack_joins *j, uint32_t thread,
		    const struct at_cfa *from, const struct at_cfa *to,
		    uint32_t n)
{
	struct edge *e = find_edge(j, thread, from);

	if (e) {
		e->n += n;
		e->is_forbidden |= e->to.pc != to->pc || e->to.cfa != to->cfa;
		return 0;
	}
	return SEAM_INDEX_APPEND(&j->edge_index, hash_of(thread, from),
				 &j->edges, (struct edge) {
					.from = *from, .to = *to,
					.thread = thread, .n = n }) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

/* ---- joining ---- */

/* Whether enough samples have the caller of @e, and none has another. */
static bool is_known(const struct stack_joins *j, const struct distinct *d,
		     const struct edge *e)
{
	uint64_t hash;
	const struct call_site *site = find_site(j, d->space, &e->from, &hash);

	return !e->is_forbidden && e->n >= (site && site->has_several ?
					    SEAM_STACK_JOIN_MORE_SAMPLES :
					    SEAM_STACK_JOIN_SAMPLES);
}

/* Append the callers of j->frames' last one to j->words.  To the root? */
static bool follow(struct stack_joins *j, const struct distinct *d)
{
	struct at_cfa at = j->frames[j->n - 1];

	for (size_t i = 0; at.cfa && i < SEAM_STACK_JOIN_FRAMES; i++) {
		const struct edge *e = find_edge(j, d->thread, &at);

		if (!e || !is_known(j, d, e) ||
		    !SEAM_ARRAY_ADD(&j->words, e->to.pc))
			return false;
		at = place_of(j, d, e->to.pc, e->to.cfa);
	}
	return !at.cfa;
}

/* Join @d, if it was cut and its callers are known. */
static int join(struct stack_joins *j, struct distinct *d)
{
	const struct seam_callchain *c = &j->chains->items.items[d->chain];
	uint64_t n_walked;
	size_t n, n_kernel;

	if (!seam_stack_end_is_cut(d->walk->raw[3]))
		return 0;
	n_walked = read_frames(j, d);
	if (!n_walked || j->n < n_walked)
		return 0;
	user_part(j, d->chain, &n);
	n_kernel = c->n - n;
	j->words.n = 0;
	if (!SEAM_ARRAY_EXTEND(&j->words, j->chains->words.items + c->first,
			       n_kernel + n_walked) ||
	    !SEAM_ARRAY_ADD(&j->words, SEAM_CALLCHAIN_JOINED))
		return -ENOMEM;
	if (!follow(j, d))
		return 0;
	d->joined = seam_callchains_add(j->chains, d->pid, j->words.items,
					j->words.n);
	return d->joined == SEAM_NONE ? -ENOMEM : 0;
}

/* ---- all of it ---- */

/* Set how each stack ended.  *@n_cut: how many were cut. */
static int set_ends(struct stack_joins *j, size_t *n_cut)
{
	struct seam_samples *s = &j->profile->samples;

	for (size_t i = 0; i < j->walks->n; i++) {
		const struct seam_stack_walk *w = &j->walks->items[i];
		uint8_t end;

		if (!seam_unwound_is((struct seam_bytes) { w->raw,
							   w->raw_bytes },
				     &end))
			continue;
		if (end >= SEAM_STACK_JOINED && end != SEAM_STACK_ABSENT &&
		    end != SEAM_STACK_OF_32_BIT)
			end = SEAM_STACK_UNREPORTED;
		if (!seam_samples_set_end(s, w->sample,
					  (enum seam_stack_end)end))
			return -ENOMEM;
		if (!seam_stack_end_is_cut(end))
			continue;
		j->is_cut[s->thread[w->sample]] = true;
		++*n_cut;
	}
	return 0;
}

static bool takes_part(const struct stack_joins *j,
		       const struct seam_stack_walk *w)
{
	const struct seam_samples *s = &j->profile->samples;

	return s->end && s->end[w->sample] < SEAM_STACK_JOINED &&
	       j->is_cut[s->thread[w->sample]];
}

static int join_all(struct stack_joins *j)
{
	struct seam_samples *s = &j->profile->samples;
	int r = 0;

	for (size_t i = 0; r == 0 && i < j->walks->n; i++)
		if (takes_part(j, &j->walks->items[i]))
			r = add_stack(j, &j->walks->items[i]);
	/* enter the callers that stacks have */
	for (size_t i = 0; r == 0 && i < j->stacks.n; i++) {
		const struct distinct *d = &j->stacks.items[i];
		const struct at_cfa *f = j->frames;

		read_frames(j, d);
		for (size_t k = 0; r == 0 && k + 1 < j->n; k++) {
			r = add_edge(j, d->thread, &f[k], &f[k + 1], d->n);
			if (r == 0)
				r = add_site(j, d->space, &f[k], f[k + 1].pc);
		}
	}
	for (size_t i = 0; r == 0 && i < j->stacks.n; i++)
		r = join(j, &j->stacks.items[i]);
	for (size_t i = 0; r == 0 && i < j->walks->n; i++) {
		const struct seam_stack_walk *w = &j->walks->items[i];
		uint32_t chain = takes_part(j, w) ?
				 j->stacks.items[w->stack].joined : SEAM_NONE;

		if (chain == SEAM_NONE)
			continue;
		s->stack[w->sample] = chain;
		s->end[w->sample] = SEAM_STACK_JOINED;
	}
	return r;
}

int seam_stack_joins(struct seam_profile *profile,
		     struct seam_callchains *chains,
		     const struct seam_tasks *tasks,
		     struct seam_jit_code *jit, struct seam_stack_walks *walks,
		     bool does_join)
{
	struct stack_joins *j = walks->n ? calloc(1, sizeof(*j)) : NULL;
	size_t n_cut = 0;
	int r = 0;

	if (!walks->n)
		return 0;
	if (j)
		j->is_cut = calloc(tasks->keys.n, sizeof(*j->is_cut));
	if (!j || !j->is_cut) {
		free(j);
		return -ENOMEM;
	}
	j->profile = profile;
	j->chains = chains;
	j->tasks = tasks;
	j->jit = jit;
	j->walks = walks;
	j->at.key = SEAM_NONE;
	r = set_ends(j, &n_cut);
	if (r == 0 && n_cut && does_join)
		r = join_all(j);
	free(j->is_cut);
	free(j->stacks.items);
	seam_index_fini(&j->stack_index);
	free(j->edges.items);
	seam_index_fini(&j->edge_index);
	free(j->sites.items);
	seam_index_fini(&j->site_index);
	free(j->words.items);
	free(j);
	return r;
}
