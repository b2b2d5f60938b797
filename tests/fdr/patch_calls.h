/* SPDX-License-Identifier: MIT */
/* patch_calls.h - functions with sleds of each kind, for patch_threads.c */
#ifndef SEAM_TESTS_FDR_PATCH_CALLS_H
#define SEAM_TESTS_FDR_PATCH_CALLS_H

int patch_leaf(int x);		/* x + 1 */
int patch_two_exits(int x);	/* x * 3, or x * 5 if x is even */
int patch_tail(int x);		/* patch_leaf(x) */
int patch_logged(int x);	/* x ^ 1 */
int patch_event(int x);		/* x */
int patch_entry(int x);		/* x - 1 */
int patch_long_entry(int x);	/* x - 2 */

#endif /* SEAM_TESTS_FDR_PATCH_CALLS_H */
