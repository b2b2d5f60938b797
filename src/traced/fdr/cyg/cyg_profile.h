/* SPDX-License-Identifier: MIT */
/*
 * cyg_profile.h - programs built with gcc's or clang's -finstrument-functions
 *
 * Their functions call __cyg_profile_func_enter() and _exit(), which are in
 * this library.  There is no list of such functions: a function gets an id when
 * it is first called, by its address.  gcc and clang call exit on the way of an
 * exception too, longjmp() does not.
 *
 * From handlers: no lock, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls of further functions count as lost; so do all calls where there is no
 * memory for the table.
 */
enum { SEAM_FDR_CYG_FUNCTIONS = 1 << 20 };

/* Begin or end to record calls. */
void seam_fdr_cyg_set(bool is_on);

/*
 * From now on record only the functions that seam_fdr_cyg_want() names, if
 * @is_selective.  seam_fdr_cyg_want() returns the id of the function at
 * @address, which may be new; 0: too many functions have ids.
 */
void seam_fdr_cyg_want_none(bool is_selective);
uint32_t seam_fdr_cyg_want(uint64_t address);

/*
 * From now on call @announce with the index of each new function, on its first
 * call.  Before that, call @announce for each earlier function that was not
 * announced with result 0; returns the first failure of these calls.
 */
int seam_fdr_cyg_set_announce(int (*announce)(uint32_t i, bool is_first_call));

/* Nothing was announced so far, as in a forked child. */
void seam_fdr_cyg_announce_again(void);

/* Whether a function has an id. */
bool seam_fdr_cyg_has_functions(void);

/*
 * The address and id of function @i; false: it has none, as where two threads
 * called it first at once.
 */
bool seam_fdr_cyg_function(uint32_t i, uint64_t *address, uint32_t *id);
