/* SPDX-License-Identifier: MIT */
/* checked_calls.h - instrumented functions for test_checked.c */
#ifndef SEAM_TESTS_FDR_CHECKED_CALLS_H
#define SEAM_TESTS_FDR_CHECKED_CALLS_H

#include <stdint.h>

/* chain() -> middle() -> leaf(); the last calls @inside, not instrumented. */
void calls_leaf(void (*inside)(void));
void calls_middle(void (*inside)(void));
void calls_chain(void (*inside)(void));

/* hop() ends in a tail call of leaf(), away() in one of @inside. */
void calls_hop(void (*inside)(void));
void calls_away(void (*inside)(void));
void calls_around_away(void (*inside)(void));

uint64_t calls_six(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		   uint64_t f);

/* Calls itself @n times, then @inside. */
void calls_deep(int n, void (*inside)(void));

#endif /* SEAM_TESTS_FDR_CHECKED_CALLS_H */
