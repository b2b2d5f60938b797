/* SPDX-License-Identifier: MIT */
/* spaces.c - branches, numbers, a segment tree; the idea is in spaces.h */
#include "model/perf/spaces.h"

#include <errno.h>
#include <stdlib.h>

/* -- changes ------------------------------------------------------------ */

uint32_t seam_spaces_add(struct seam_spaces *spaces)
{
	return SEAM_ARRAY_ADD(&spaces->items, (struct seam_space) { 0 }) ?
	       (uint32_t)(spaces->items.n - 1) : SEAM_NONE;
}

/* A new branch of @space; SEAM_NONE when memory ran out. */
static uint32_t add_branch(struct seam_spaces *spaces, uint32_t space,
			   struct seam_branch branch)
{
	uint32_t id = (uint32_t)spaces->branches.n;

	return SEAM_ARRAY_ADD(&spaces->branches, branch) &&
	       SEAM_ARRAY_ADD(&spaces->items.items[space].branches, id) ? id :
	       SEAM_NONE;
}

/* The current branch of @space; the first, from the beginning, if none. */
static uint32_t last_branch(struct seam_spaces *spaces, uint32_t space)
{
	const struct seam_space *s = &spaces->items.items[space];

	return s->branches.n ? s->branches.items[s->branches.n - 1] :
	       add_branch(spaces, space, (struct seam_branch) {
			.parent = SEAM_NONE });
}

int seam_spaces_map(struct seam_spaces *spaces, uint32_t space,
		    uint64_t time_ns, uint64_t begin, uint64_t end,
		    uint32_t mapping)
{
	uint32_t branch;

	if (begin >= end)
		return 0;
	branch = last_branch(spaces, space);
	if (branch == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&spaces->vmas, (struct seam_vma) {
			.begin = begin, .end = end, .from_ns = time_ns,
			.mapping = mapping, .last = branch,
		}))
		return -ENOMEM;
	spaces->branches.items[branch].n_vmas++;
	return 0;
}

int seam_spaces_clear(struct seam_spaces *spaces, uint32_t space,
		      uint64_t time_ns)
{
	uint32_t branch = add_branch(spaces, space, (struct seam_branch) {
		.from_ns = time_ns, .parent = SEAM_NONE });

	return branch == SEAM_NONE ? -ENOMEM : 0;
}

int seam_spaces_copy(struct seam_spaces *spaces, uint32_t child,
		     uint32_t parent, uint64_t time_ns)
{
	uint32_t from = last_branch(spaces, parent);

	if (from == SEAM_NONE ||
	    add_branch(spaces, child, (struct seam_branch) {
			.from_ns = time_ns, .parent = from,
			.fork = spaces->branches.items[from].n_vmas,
		}) == SEAM_NONE)
		return -ENOMEM;
	return 0;
}

/* -- numbers ------------------------------------------------------------ */

struct numbering {
	struct seam_branch *branches;
	struct seam_vma *vmas;	/* by number */
	uint32_t next;
};

/* Consecutive numbers: one for the branch itself, then its vmas. */
static void number_branch(struct numbering *n, struct seam_branch *b,
			  uint32_t tree)
{
	b->tree = tree;
	b->first = n->next;
	b->n_open = b->n_vmas;
	n->next += 1 + b->n_vmas;
}

/* What comes after the vmas of @b is numbered, but for its first @n_left. */
static void close_vmas(struct numbering *n, struct seam_branch *b,
		       uint32_t n_left)
{
	for (; b->n_open > n_left; b->n_open--)
		n->vmas[b->first + b->n_open].last = n->next - 1;
}

/*
 * Branches before their forks, and forks of later vmas first: so the numbers
 * after a vma are consecutive.  No recursion: forks may be a long chain.
 */
static void number_tree(struct numbering *n, uint32_t root, uint32_t tree)
{
	struct seam_branch *b = &n->branches[root];

	number_branch(n, b, tree);
	for (;;) {
		if (b->child != SEAM_NONE) {
			struct seam_branch *fork = &n->branches[b->child];

			b->child = fork->next;
			close_vmas(n, b, fork->fork);
			number_branch(n, fork, tree);
			b = fork;
			continue;
		}
		close_vmas(n, b, 0);
		if (b->parent == SEAM_NONE)
			return;
		b = &n->branches[b->parent];
	}
}

/* -- trees -------------------------------------------------------------- */

/* Scratch space, for one tree after the other. */
struct space_building {
	SEAM_ARRAY(uint32_t) counts;	/* by node, then where its list is */
	SEAM_ARRAY(uint32_t) lists;	/* numbers of vmas, ascending */
	SEAM_ARRAY(uint32_t) open;	/* vmas of a node that nest */
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return SEAM_COMPARE(*x, *y);
}

/* The distinct bounds of the vmas of @tree, sorted.  0 or -ENOMEM. */
static int add_bounds(struct seam_spaces *spaces,
		      struct seam_vma_tree *tree)
{
	size_t n = 0;
	uint64_t *bounds;

	if (!SEAM_ARRAY_RESERVE(&spaces->bounds,
				2 * (size_t)(tree->end - tree->first)))
		return -ENOMEM;
	bounds = spaces->bounds.items + tree->bounds;
	for (uint32_t i = tree->first; i < tree->end; i++) {
		const struct seam_vma *vma = &spaces->vmas.items[i];

		if (vma->begin == vma->end)
			continue;
		bounds[n++] = vma->begin;
		bounds[n++] = vma->end;
	}
	if (n)
		qsort(bounds, n, sizeof(*bounds), by_value);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || bounds[i] != bounds[i - 1])
			bounds[tree->n_bounds++] = bounds[i];
	spaces->bounds.n += tree->n_bounds;
	return 0;
}

/* How many of @bounds are at or below @addr. */
static uint32_t count_bounds(const uint64_t *bounds, uint32_t n, uint64_t addr)
{
	return (uint32_t)SEAM_ARRAY_SEARCH(i, n, bounds[i] <= addr);
}

/*
 * The nodes that together cover @vma: leaves are n .. 2 * n - 1, the parent of
 * i is i / 2.  Count vmas by node in @at, or add them to @lists at @at.
 */
static void insert(const uint64_t *bounds, uint32_t n,
		   const struct seam_vma *vma, uint32_t number, uint32_t *at,
		   uint32_t *lists)
{
	size_t left = n - 1 + (size_t)count_bounds(bounds, n, vma->begin);
	size_t right = n - 1 + (size_t)count_bounds(bounds, n, vma->end);

	for (; left < right; left /= 2, right /= 2) {
		size_t here[2] = { 0, 0 };

		if (left % 2)
			here[0] = left++;
		if (right % 2)
			here[1] = --right;
		for (int i = 0; i < 2; i++) {
			if (here[i] && lists)
				lists[at[here[i]]] = number;
			at[here[i]] += here[i] > 0;
		}
	}
}

static void insert_all(const struct seam_spaces *spaces,
		       const struct seam_vma_tree *tree, uint32_t *at,
		       uint32_t *lists)
{
	for (uint32_t i = tree->first; i < tree->end; i++)
		if (spaces->vmas.items[i].begin < spaces->vmas.items[i].end)
			insert(spaces->bounds.items + tree->bounds,
			       tree->n_bounds, &spaces->vmas.items[i], i, at,
			       lists);
}

/* From number @from on, @vma; replaces a mark of the same number. */
static int add_mark(struct seam_spaces *spaces, size_t first, uint32_t from,
		    uint32_t vma)
{
	size_t n = spaces->marks.n;

	if (n > first && spaces->marks.items[n - 1].from == from)
		spaces->marks.n--;
	return SEAM_ARRAY_ADD(&spaces->marks, (struct seam_vma_mark) {
			.from = from, .vma = vma }) ? 0 : -ENOMEM;
}

/*
 * The vmas of one node, flattened: after the end of one, the one around it
 * holds again.  No look-up is after number @end.
 */
static int add_marks(struct seam_spaces *spaces, struct space_building *b,
		     const uint32_t *list, size_t n, uint32_t end)
{
	const struct seam_vma *vmas = spaces->vmas.items;
	size_t first = spaces->marks.n, depth = 0;
	uint32_t *open = b->open.items;

	for (size_t i = 0; i <= n; i++) {
		uint32_t number = i < n ? list[i] : end;

		while (depth && vmas[open[depth - 1]].last < number) {
			uint32_t after = vmas[open[--depth]].last + 1;

			if (after < end &&
			    add_mark(spaces, first, after,
				     depth ? open[depth - 1] : 0))
				return -ENOMEM;
		}
		if (i == n)
			break;
		if (add_mark(spaces, first, number, number))
			return -ENOMEM;
		open[depth++] = number;
	}
	return 0;
}

/* The nodes of @tree and their marks. */
static int add_nodes(struct seam_spaces *spaces, struct space_building *b,
		     const struct seam_vma_tree *tree)
{
	size_t n_nodes = 2 * (size_t)tree->n_bounds;
	uint32_t begin = 0, longest = 0;
	uint64_t sum = 0;

	if (!SEAM_ARRAY_RESERVE(&b->counts, n_nodes) ||
	    !SEAM_ARRAY_RESERVE(&spaces->nodes, n_nodes + 1))
		return -ENOMEM;
	memset(b->counts.items, 0, n_nodes * sizeof(*b->counts.items));
	insert_all(spaces, tree, b->counts.items, NULL);
	/* counts become the places where lists begin */
	for (size_t i = 0; i < n_nodes; i++) {
		uint32_t count = b->counts.items[i];

		b->counts.items[i] = (uint32_t)sum;
		sum += count;
		longest = count > longest ? count : longest;
	}
	if (sum >= SEAM_NONE || !SEAM_ARRAY_RESERVE(&b->lists, sum) ||
	    !SEAM_ARRAY_RESERVE(&b->open, longest))
		return -ENOMEM;
	insert_all(spaces, tree, b->counts.items, b->lists.items);
	/* Filling moved each start to its end, the next one's start. */
	for (size_t i = 0; i < n_nodes; i++) {
		uint32_t end = b->counts.items[i];
		size_t n_marks = spaces->marks.n - tree->marks;

		if (n_marks >= SEAM_NONE)
			return -ENOMEM;
		*SEAM_ARRAY_PUSH(&spaces->nodes) = (uint32_t)n_marks;
		if (add_marks(spaces, b, b->lists.items + begin, end - begin,
			      tree->end))
			return -ENOMEM;
		begin = end;
	}
	*SEAM_ARRAY_PUSH(&spaces->nodes) =
		(uint32_t)(spaces->marks.n - tree->marks);
	return 0;
}

/* Give all vmas their numbers and their places by them. */
static int number_all(struct seam_spaces *spaces)
{
	size_t n_numbers = spaces->vmas.n + spaces->branches.n;
	struct numbering n = { .branches = spaces->branches.items };

	if (n_numbers < SEAM_NONE / 2)
		n.vmas = calloc(n_numbers + 1, sizeof(*n.vmas));
	if (!n.vmas)
		return -ENOMEM;
	/* the forks of each branch, the latest first; they are in order */
	for (size_t i = 0; i < spaces->branches.n; i++)
		n.branches[i].child = SEAM_NONE;
	for (uint32_t i = 0; i < spaces->branches.n; i++) {
		uint32_t parent = n.branches[i].parent;

		if (parent == SEAM_NONE)
			continue;
		n.branches[i].next = n.branches[parent].child;
		n.branches[parent].child = i;
	}
	for (uint32_t i = 0; i < spaces->branches.n; i++) {
		size_t tree = spaces->trees.n;

		if (n.branches[i].parent != SEAM_NONE)
			continue;
		if (!SEAM_ARRAY_ADD(&spaces->trees, (struct seam_vma_tree) {
				.first = n.next })) {
			free(n.vmas);
			return -ENOMEM;
		}
		number_tree(&n, i, (uint32_t)tree);
		spaces->trees.items[tree].end = n.next;
	}
	for (size_t i = 0; i < spaces->vmas.n; i++) {
		const struct seam_vma *vma = &spaces->vmas.items[i];
		struct seam_branch *b = &n.branches[vma->last];
		struct seam_vma *to = &n.vmas[b->first + ++b->n_open];
		uint32_t last = to->last;

		*to = *vma;
		to->last = last;
	}
	free(spaces->vmas.items);
	spaces->vmas.items = n.vmas;
	spaces->vmas.n = n_numbers;
	return 0;
}

int seam_spaces_seal(struct seam_spaces *spaces)
{
	struct space_building building = { 0 };
	int r = number_all(spaces);

	for (size_t i = 0; r == 0 && i < spaces->trees.n; i++) {
		struct seam_vma_tree *tree = &spaces->trees.items[i];

		tree->bounds = spaces->bounds.n;
		tree->nodes = spaces->nodes.n;
		tree->marks = spaces->marks.n;
		r = add_bounds(spaces, tree);
		if (r == 0 && tree->n_bounds)
			r = add_nodes(spaces, &building, tree);
	}
	free(building.counts.items);
	free(building.lists.items);
	free(building.open.items);
	return r;
}

/* -- look-up ------------------------------------------------------------ */

/* The state of a space at a time. */
struct space_state {
	const struct seam_branch *branch;	/* NULL: empty so far */
	uint32_t number;			/* of its last vma by then */
	uint64_t from_ns, to_ns;		/* of the branch */
};

static uint64_t branch_time(const struct seam_spaces *spaces,
			    const struct seam_space *space, size_t i)
{
	return spaces->branches.items[space->branches.items[i]].from_ns;
}

static struct space_state find_state(const struct seam_spaces *spaces,
				     const struct seam_space *space,
				     uint64_t time_ns)
{
	struct space_state at = { .to_ns = UINT64_MAX };
	size_t n = SEAM_ARRAY_SEARCH(i, space->branches.n,
			branch_time(spaces, space, i) <= time_ns);
	const struct seam_vma *vmas;

	if (n < space->branches.n)
		at.to_ns = branch_time(spaces, space, n);
	if (n == 0)
		return at;
	at.branch = &spaces->branches.items[space->branches.items[n - 1]];
	at.from_ns = at.branch->from_ns;
	vmas = &spaces->vmas.items[at.branch->first + 1];
	n = SEAM_ARRAY_SEARCH(i, at.branch->n_vmas,
			      vmas[i].from_ns <= time_ns);
	at.number = at.branch->first + (uint32_t)n;
	return at;
}

const struct seam_vma *seam_spaces_find(const struct seam_spaces *spaces,
					uint32_t space, uint64_t addr,
					uint64_t time_ns, uint64_t *from_ns,
					uint64_t *to_ns)
{
	struct space_state at = find_state(spaces, &spaces->items.items[space],
					   time_ns);
	const struct seam_vma_tree *tree;
	const uint32_t *nodes;
	uint32_t vma = 0, next = SEAM_NONE, bound;

	*from_ns = at.from_ns;
	*to_ns = at.to_ns;
	if (!at.branch)
		return NULL;
	tree = &spaces->trees.items[at.branch->tree];
	if (tree->n_bounds == 0)
		return NULL;	/* there may be no arrays to point into */
	nodes = spaces->nodes.items + tree->nodes;
	bound = count_bounds(spaces->bounds.items + tree->bounds,
			     tree->n_bounds, addr);
	if (bound == 0)
		return NULL;
	/* of all nodes, the innermost vma at the number, and the next mark */
	for (size_t i = bound - 1 + tree->n_bounds; i; i /= 2) {
		const struct seam_vma_mark *marks = spaces->marks.items +
						    tree->marks + nodes[i];
		size_t n = nodes[i + 1] - nodes[i];
		size_t k = SEAM_ARRAY_SEARCH(j, n, marks[j].from <= at.number);

		if (k > 0 && marks[k - 1].vma > vma)
			vma = marks[k - 1].vma;
		if (k < n && marks[k].from < next)
			next = marks[k].from;
	}
	/* Numbers after the branch's own are those of forks. */
	if (next <= at.branch->first + at.branch->n_vmas)
		*to_ns = spaces->vmas.items[next].from_ns;
	if (vma > at.branch->first)
		*from_ns = spaces->vmas.items[vma].from_ns;
	return vma && spaces->vmas.items[vma].mapping != SEAM_NONE ?
	       &spaces->vmas.items[vma] : NULL;
}

void seam_spaces_fini(struct seam_spaces *spaces)
{
	for (size_t i = 0; i < spaces->items.n; i++)
		free(spaces->items.items[i].branches.items);
	free(spaces->items.items);
	free(spaces->branches.items);
	free(spaces->vmas.items);
	free(spaces->trees.items);
	free(spaces->bounds.items);
	free(spaces->nodes.items);
	free(spaces->marks.items);
	*spaces = (struct seam_spaces) { 0 };
}
