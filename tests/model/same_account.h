/* SPDX-License-Identifier: MIT */
/* same_account.h - two accounts that must agree to the last figure */
#ifndef SEAM_TEST_SAME_ACCOUNT_H
#define SEAM_TEST_SAME_ACCOUNT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "account_row.h"

static inline void assert_same_rows(const struct seam_account *a,
				    const struct seam_account *b)
{
	for (size_t i = 0; i < a->rows.n; i++) {
		const struct seam_account_row *x = &a->rows.items[i];
		const struct seam_account_row *y =
			account_row(b, x->function);

		if (!x->count)
			continue;
		assert_non_null(y);
		assert_int_equal(x->count, y->count);
		assert_int_equal(x->min_ns, y->min_ns);
		assert_int_equal(x->max_ns, y->max_ns);
		assert_int_equal(x->sum_ns, y->sum_ns);
		assert_int_equal(x->self_ns, y->self_ns);
		assert_int_equal(x->total_ns, y->total_ns);
		for (unsigned int q = 0; q <= 20; q++)
			assert_int_equal(seam_account_quantile(a, x, q / 20.0),
					 seam_account_quantile(b, y, q / 20.0));
	}
}

static inline void assert_same(const struct seam_account *a,
			       const struct seam_account *b)
{
	assert_int_equal(a->n_calls, b->n_calls);
	assert_memory_equal(a->repairs, b->repairs, sizeof(a->repairs));
	assert_int_equal(a->problems.n, b->problems.n);
	assert_int_equal(a->slowest.n, b->slowest.n);
	for (size_t i = 0; i < a->slowest.n; i++)
		assert_int_equal(
			a->slowest.items[i].end_ns -
			a->slowest.items[i].begin_ns,
			b->slowest.items[i].end_ns -
			b->slowest.items[i].begin_ns);
	assert_same_rows(a, b);
	assert_same_rows(b, a);
}

#endif /* SEAM_TEST_SAME_ACCOUNT_H */
