/* SPDX-License-Identifier: MIT */
/* account_merge.c - the sums of all workers added up */
#include "model/xray/account_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

/* Add @from, whose octaves are in @octaves, to @into, a row of @account. */
static int merge_row(struct seam_account *account,
		     struct seam_account_row *into,
		     const struct seam_sums_row *from,
		     const struct seam_octave *octaves)
{
	into->sum_ns += from->sum_ns[0] + from->sum_ns[1];
	into->total_ns += from->sum_ns[1];
	into->self_ns += from->sum_ns[0] + from->sum_ns[1] - from->child_ns;
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (size_t o = 0; o < SEAM_HISTOGRAM_OCTAVES; o++) {
		struct seam_octave *octave;

		if (!from->octave[o])
			continue;
		if (!into->octave[o]) {
			octave = SEAM_ARRAY_PUSH(&account->octaves);
			if (!octave)
				return -ENOMEM;
			*octave = (struct seam_octave) { 0 };
			into->octave[o] = (uint32_t)account->octaves.n;
		}
		octave = &account->octaves.items[into->octave[o] - 1];
		for (size_t i = 0; i < SEAM_HISTOGRAM_STEPS; i++) {
			uint64_t n = octaves[from->octave[o]].n[i];

			octave->n[i] += n;
			into->count += n;
			account->n_calls += n;
		}
	}
	return 0;
}

/* The row of @function, new if need be; NULL: out of memory. */
static struct seam_account_row *find_row(struct seam_account *account,
					 struct seam_index *index,
					 uint32_t function)
{
	uint64_t hash = seam_hash_u64(function);
	struct seam_index_probe probe = seam_index_probe(index, hash);
	struct seam_account_row *row;
	uint32_t id;

	while ((id = seam_index_next(index, &probe)) != SEAM_NONE)
		if (account->rows.items[id].function == function)
			return &account->rows.items[id];
	row = SEAM_ARRAY_PUSH(&account->rows);
	if (!row || seam_index_add(index, hash, (uint32_t)account->rows.n - 1))
		return NULL;
	*row = (struct seam_account_row) {
		.function = function, .min_ns = UINT64_MAX,
	};
	return row;
}

/* Rows of all sums, the equal functions' added up. */
static int merge_sums(struct seam_account *account, struct seam_index *index,
		      const struct seam_sums *sums)
{
	for (size_t i = 1; i < sums->rows.n; i++) {
		const struct seam_sums_row *from = &sums->rows.items[i];
		struct seam_account_row *row = find_row(account, index,
							from->function);

		if (!row || merge_row(account, row, from, sums->octaves.items))
			return -ENOMEM;
	}
	for (size_t i = 0; i < SEAM_N_REPAIRS; i++)
		account->repairs[i] += sums->calls.repairs[i];
	account->n_in_runs += sums->n_in_runs;
	seam_xray_problems_merge(&account->problems, &sums->problems);
	return 0;
}

static int by_ends(const void *a, const void *b)
{
	const struct seam_account_edge *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static int edge_by_sum(const void *a, const void *b)
{
	const struct seam_account_edge *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	return by_ends(a, b);
}

static int row_by_sum(const void *a, const void *b)
{
	const struct seam_account_row *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Edges and slowest calls: put in one array, sorted, folded or cut. */
static int merge_details(struct seam_account *account,
			 const struct seam_sums *sums)
{
	if (!SEAM_ARRAY_RESERVE(&account->edges, sums->edges.n) ||
	    !SEAM_ARRAY_RESERVE(&account->slowest, sums->slowest.n))
		return -ENOMEM;
	if (sums->edges.n)
		memcpy(account->edges.items + account->edges.n,
		       sums->edges.items,
		       sums->edges.n * sizeof(*sums->edges.items));
	account->edges.n += sums->edges.n;
	if (sums->slowest.n)
		memcpy(account->slowest.items + account->slowest.n,
		       sums->slowest.items,
		       sums->slowest.n * sizeof(*sums->slowest.items));
	account->slowest.n += sums->slowest.n;
	return 0;
}

static void fold_edges(struct seam_account *account)
{
	struct seam_account_edge *edges = account->edges.items;
	size_t n = 0;

	if (account->edges.n == 0)
		return;
	qsort(edges, account->edges.n, sizeof(*edges), by_ends);
	for (size_t i = 1; i < account->edges.n; i++) {
		if (by_ends(&edges[n], &edges[i]) == 0) {
			edges[n].count += edges[i].count;
			edges[n].sum_ns += edges[i].sum_ns;
		} else {
			edges[++n] = edges[i];
		}
	}
	account->edges.n = n + 1;
	qsort(edges, account->edges.n, sizeof(*edges), edge_by_sum);
}

int seam_account_merge(struct seam_account *account,
		       const struct seam_sums *sums, size_t n_slowest)
{
	struct seam_index index = { 0 };
	int err = 0;

	for (; !err && sums; sums = sums->next) {
		err = merge_sums(account, &index, sums);
		if (!err)
			err = merge_details(account, sums);
	}
	seam_index_fini(&index);
	if (err)
		return err;
	fold_edges(account);
	if (account->rows.n)
		qsort(account->rows.items, account->rows.n,
		      sizeof(*account->rows.items), row_by_sum);
	if (account->slowest.n)
		qsort(account->slowest.items, account->slowest.n,
		      sizeof(*account->slowest.items), seam_account_by_length);
	if (account->slowest.n > n_slowest)
		account->slowest.n = n_slowest;
	return 0;
}
