/* SPDX-License-Identifier: MIT */
/* checked_calls.c - built by clang with sleds; see checked_calls.h */
#include "fdr/checked_calls.h"

#define KEEP __attribute__((noinline, disable_tail_calls))

KEEP void calls_leaf(void (*inside)(void))
{
	inside();
}

KEEP void calls_middle(void (*inside)(void))
{
	calls_leaf(inside);
}

KEEP void calls_chain(void (*inside)(void))
{
	calls_middle(inside);
}

__attribute__((noinline)) void calls_hop(void (*inside)(void))
{
	calls_leaf(inside);
}

__attribute__((noinline)) void calls_away(void (*inside)(void))
{
	inside();
}

KEEP void calls_around_away(void (*inside)(void))
{
	calls_away(inside);
}

KEEP uint64_t calls_six(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			uint64_t e, uint64_t f)
{
	return a + b + c + d + e + f;
}

KEEP void calls_deep(int n, void (*inside)(void))
{
	if (n > 0)
		calls_deep(n - 1, inside);
	else
		inside();
}
