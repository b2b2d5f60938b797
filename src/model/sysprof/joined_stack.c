/* SPDX-License-Identifier: MIT */
/*
 * joined_stack.c - two stacks to one; see joined_stack.h
 *
 * All arrays are leaf first.  An "outer" frame has a larger index.
 */
#include "model/sysprof/joined_stack.h"

#include <errno.h>

void seam_joined_stack_fini(struct seam_joined_stack *stack)
{
	free(stack->frames.items);
	free(stack->host.items);
	free(stack->lua.items);
}

/* -- frames of both ------------------------------------------------------ */

static bool is_made(const struct seam_sysprof_place *place)
{
	return place->frame != SEAM_NONE;
}

static int name_frames(struct seam_joined_stack *stack,
		       struct seam_sysprof_names *names,
		       const struct seam_sysprof_item *s)
{
	stack->frames.n = stack->host.n = stack->lua.n = 0;
	if (!SEAM_ARRAY_RESERVE(&stack->frames, s->n_host + s->n_lua + 2) ||
	    !SEAM_ARRAY_RESERVE(&stack->host, s->n_host + 1) ||
	    !SEAM_ARRAY_RESERVE(&stack->lua, s->n_lua + 1))
		return -ENOMEM;
	for (size_t i = 0; i < s->n_host; i++) {
		struct seam_sysprof_place *place =
			&stack->host.items[stack->host.n++];

		*place = seam_sysprof_names_host(names, s->host[i], i == 0);
		if (!is_made(place))
			return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_lua; i++) {
		struct seam_sysprof_place *place =
			&stack->lua.items[stack->lua.n++];

		*place = seam_sysprof_names_lua(names, &s->lua[i]);
		if (!is_made(place))
			return -ENOMEM;
	}
	return 0;
}

static void put(struct seam_joined_stack *stack,
		const struct seam_sysprof_place *places, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		stack->frames.items[stack->frames.n++] = places[i].frame;
}

/* -- by joints ----------------------------------------------------------- */

static bool is_vm(const struct seam_sysprof_place *place)
{
	return place->role == SEAM_SYSPROF_ROLE_VM ||
	       place->role == SEAM_SYSPROF_ROLE_SWITCH;
}

struct joining {
	struct seam_joined_stack *stack;
	const struct seam_sysprof_names *names;
	const struct seam_sysprof_item *sample;
	bool has_vm;		/* frames of the VM are known in this stack */
	size_t n_left;		/* comparisons that may still be made */
};

/* No real stack needs as many; one made to be slow does. */
static size_t most_comparisons(const struct seam_sysprof_item *sample)
{
	return 65536 + 64 * (sample->n_lua + sample->n_host);
}

/* Whether a host frame can be that of Lua frame @l. */
static bool is_joint(const struct joining *j, size_t l)
{
	return j->sample->lua[l].kind != SEAM_SYSPROF_LFUNC &&
	       j->stack->lua.items[l].symbol;
}

/* Whether the host's frame @h is that of Lua frame @l, a joint. */
static bool is_same(const struct joining *j, size_t l, size_t h)
{
	const struct seam_sysprof_place *lua = &j->stack->lua.items[l];
	const struct seam_sysprof_place *host = &j->stack->host.items[h];

	if (j->sample->lua[l].kind == SEAM_SYSPROF_CFUNC)
		return host->symbol && lua->function == host->function;
	return seam_fast_functions_is(
			seam_profile_text(j->names->profile, lua->symbol),
			seam_profile_text(j->names->profile, host->symbol));
}

/* Whether frame @h was called by the VM, as far as that is known. */
static bool is_called_by_vm(const struct joining *j, size_t h)
{
	const struct seam_sysprof_place *host = j->stack->host.items;
	size_t n = j->stack->host.n;

	if (j->has_vm)
		return h + 1 < n && is_vm(&host[h + 1]);
	/* of a C function that calls itself, the outermost */
	return h + 1 == n || host[h + 1].function != host[h].function;
}

/* The host's frame of joint @l, from @h outward; the number of all: none. */
static size_t find_frame(struct joining *j, size_t l, size_t h)
{
	size_t n = j->stack->host.n;

	for (; h < n && j->n_left; h++, j->n_left--)
		if (is_same(j, l, h) && is_called_by_vm(j, h))
			return h;
	return n;
}

/* The first joint from *@l outward that has a frame from @h on: the frame. */
static size_t find_joint(struct joining *j, size_t *l, size_t h)
{
	for (; *l < j->stack->lua.n; ++*l) {
		size_t at = is_joint(j, *l) ? find_frame(j, *l, h) :
			    j->stack->host.n;

		if (at < j->stack->host.n)
			return at;
	}
	return j->stack->host.n;
}

/*
 * Lua frames that belong to the host's frames [@from, @to) are put before the
 * frame that this returns, seen from the leaf.
 */
static size_t find_gap(const struct joining *j, size_t from, size_t to)
{
	const struct seam_sysprof_place *host = j->stack->host.items;
	size_t i = from;

	while (i < to && !is_vm(&host[i]))
		i++;
	if (i < to) {
		/* a switch is of the coroutine outside, but for the leaf */
		do
			i++;
		while (i < to && host[i].role == SEAM_SYSPROF_ROLE_VM);
		return i;
	}
	for (i = from; i < to; i++)
		if (host[i].role == SEAM_SYSPROF_ROLE_CALL)
			return i;
	/* inside of it is a joint, or code of the VM, that the VM has called */
	if (from > 0)
		return from < to ? from + 1 : from;
	while (from < to && host[from].role == SEAM_SYSPROF_ROLE_INNER)
		from++;
	return from;
}

static void join(struct joining *j)
{
	struct seam_joined_stack *stack = j->stack;
	const struct seam_sysprof_place *host = stack->host.items;
	size_t h = 0, l = 0, joint = 0;

	for (;;) {
		size_t at = find_joint(j, &joint, h);
		size_t gap = find_gap(j, h, at);

		put(stack, host, h, gap);
		put(stack, stack->lua.items, l, joint);
		put(stack, host, gap, at);
		if (at == stack->host.n)
			return;
		put(stack, host, at, at + 1);
		h = at + 1;
		/* a fast function is shown beside its C function */
		l = joint++;
		l += j->sample->lua[l].kind == SEAM_SYSPROF_CFUNC;
	}
}

/* -- as LuaJIT's parser -------------------------------------------------- */

/*
 * Frames by which repetitions make a stack longer, at most: a real program has
 * a few calls inside each other, or few frames.
 */
enum { MAX_REPEATED = 65536 };

/* Frames are put in from the root, and reversed in the end. */
struct parsing {
	struct seam_joined_stack *stack;
	const struct seam_sysprof_item *sample;
	size_t reached;		/* C functions from here on outward were met */
	size_t first;		/* frames inside of it are dropped */
	size_t max;		/* frames: repetitions are bounded */
	bool is_called;		/* a call into the VM was met */
};

static bool is_c(const struct parsing *p, size_t l)
{
	return p->sample->lua[l].kind == SEAM_SYSPROF_CFUNC;
}

/*
 * Lua frames up to the next C function, which the host's stack shows itself.
 * The parser drops the frame that it has reached, the C function or the
 * innermost one, but none before it: they are repeated at the next call.
 */
static int put_lua(struct parsing *p)
{
	struct seam_joined_stack *stack = p->stack;
	size_t n_lua = stack->lua.n;

	if (stack->frames.n + n_lua + stack->host.n > p->max)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&stack->frames, n_lua + stack->host.n))
		return -ENOMEM;
	for (size_t l = n_lua; l-- > p->first;) {
		if (!is_c(p, l)) {
			put(stack, stack->lua.items, l, l + 1);
		} else if (l < p->reached) {
			p->reached = l;
			return 0;
		}
	}
	p->reached = 0;
	p->first += p->first < n_lua;
	return 0;
}

static int put_host(struct parsing *p, size_t h)
{
	enum seam_sysprof_role role = p->stack->host.items[h].role;
	size_t outermost = p->stack->lua.n - 1;

	if (role == SEAM_SYSPROF_ROLE_CPCALL && p->stack->lua.n &&
	    is_c(p, outermost) && p->reached > outermost)
		p->reached = outermost;
	put(p->stack, p->stack->host.items, h, h + 1);
	if (role != SEAM_SYSPROF_ROLE_CALL)
		return 0;
	p->is_called = true;
	return put_lua(p);
}

static void reverse(uint32_t *items, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t item = items[i];

		items[i] = items[n - 1 - i];
		items[n - 1 - i] = item;
	}
}

static int join_as_parser(struct seam_joined_stack *stack,
			  const struct seam_sysprof_item *sample,
			  unsigned int version)
{
	struct parsing p = {
		.stack = stack, .sample = sample, .reached = stack->lua.n,
		.max = MAX_REPEATED + sample->n_lua + sample->n_host,
	};
	int r = 0;

	for (size_t h = stack->host.n; h-- > 0 && !r;) {
		if (version > 1)
			r = put_host(&p, h);
		else
			put(stack, stack->host.items, h, h + 1);
	}
	if (p.is_called)
		stack->n_left_out += p.reached;
	else
		for (size_t l = stack->lua.n; l-- > 0;)
			put(stack, stack->lua.items, l, l + 1);
	reverse(stack->frames.items, stack->frames.n);
	return r;
}

/* -- any sample ---------------------------------------------------------- */

static int make_trace(struct seam_joined_stack *stack,
		      struct seam_sysprof_names *names,
		      const struct seam_sysprof_trace *trace)
{
	struct seam_sysprof_frame proto = {
		.kind = SEAM_SYSPROF_LFUNC, .value = trace->addr,
		.line = trace->line,
	};
	struct seam_sysprof_place places[2];

	places[0] = seam_sysprof_names_trace(names, trace);
	places[1] = seam_sysprof_names_lua(names, &proto);
	stack->frames.n = 0;
	if (!is_made(&places[0]) || !is_made(&places[1]) ||
	    !SEAM_ARRAY_RESERVE(&stack->frames, 2))
		return -ENOMEM;
	put(stack, places, 0, 2);
	return 0;
}

int seam_joined_stack_make(struct seam_joined_stack *stack,
			   struct seam_sysprof_names *names,
			   const struct seam_sysprof_item *sample,
			   unsigned int version)
{
	struct joining j = {
		.stack = stack, .names = names, .sample = sample,
		.n_left = most_comparisons(sample),
	};

	if (sample->vmstate == SEAM_VMSTATE_TRACE)
		return make_trace(stack, names, &sample->trace);
	if (name_frames(stack, names, sample))
		return -ENOMEM;
	if (names->as_parser)
		return join_as_parser(stack, sample, version);
	for (size_t h = 0; h < stack->host.n && !j.has_vm; h++)
		j.has_vm = is_vm(&stack->host.items[h]);
	join(&j);
	return 0;
}
