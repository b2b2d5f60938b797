/* SPDX-License-Identifier: MIT */
/*
 * cyg_profile.h - programs built with gcc's or clang's -finstrument-functions
 *
 * Their functions call __cyg_profile_func_enter() and _exit(), which are in
 * this library.  There is no list of them: a function gets an id when it is
 * first called, by its address.  Calls are paired as the compiler has it: gcc
 * and clang call exit on the way of an exception too, longjmp() does not.
 *
 * From handlers: no lock, no allocation.
 */
#ifndef SEAM_FDR_CYG_PROFILE_H
#define SEAM_FDR_CYG_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Functions beyond that are not recorded, and their calls count as lost; all
 * do where there is no memory for a table of so many.
 */
enum { SEAM_FDR_CYG_FUNCTIONS = 1 << 20 };

/* Record from now on, or not any more. */
void seam_fdr_cyg_set(bool is_on);

/*
 * From now on record the functions alone that seam_fdr_cyg_want() names, if
 * @is_selective.  That one gives @address an id, or the one that it has: 0:
 * there are too many.
 */
void seam_fdr_cyg_want_none(bool is_selective);
uint32_t seam_fdr_cyg_want(uint64_t address);

/*
 * Call @on_met with the index of each function that is new, from where it was
 * met; and now @on_left with those before, and those for which they did not
 * return 0 so far.  Returns the last failure of it.
 */
int seam_fdr_cyg_set_announce(int (*on_met)(uint32_t i),
			      int (*on_left)(uint32_t i));

/* Nothing was announced so far, as in a forked child. */
void seam_fdr_cyg_announce_again(void);

/*
 * Functions that have ids, in their order: the number of them, and the
 * address of number @i with its id; false: it has none, as where two threads
 * met it at once.
 */
uint32_t seam_fdr_cyg_count(void);
bool seam_fdr_cyg_function(uint32_t i, uint64_t *address, uint32_t *id);

#endif /* SEAM_FDR_CYG_PROFILE_H */
