/* SPDX-License-Identifier: MIT */
/*
 * fast_functions.h - names of a VM's fast functions, from its symbols
 *
 * A sysprof stream has the number of a fast function (ffid), which depends on
 * the build of the VM: on the libraries in it, of which OpenResty and Tarantool
 * have more, and on their version.  The stream does not name the build, but it
 * has the VM's symbols: a fast function is lj_ff_NAME or lj_cf_NAME.  Numbers
 * are given in the order in which the libraries define their functions, and
 * that order is the same in all known builds; so the symbols that are there, in
 * that order, are the numbers.  A stripped VM has none of them, and an unknown
 * function would shift all others: then no ffid has a name.
 *
 * Source: LuaJIT, host/buildvm_lib.c, and jit/vmdef.lua as it made them: 2.1 of
 * 2022-03 and v2.1 head, OpenResty's luajit2, Tarantool's fork.
 */
#ifndef SEAM_FAST_FUNCTIONS_H
#define SEAM_FAST_FUNCTIONS_H

#include "base/array.h"

enum { SEAM_FAST_FUNCTIONS_MAX = 320 };

/* Zeroed is valid: no symbol was seen. */
struct seam_fast_functions {
	bool has[SEAM_FAST_FUNCTIONS_MAX];	/* by place in the order */
	bool is_c[SEAM_FAST_FUNCTIONS_MAX];	/* it is a C function */
	uint16_t by_id[SEAM_FAST_FUNCTIONS_MAX];
	size_t n_ids;
	bool has_unknown;	/* a function of no known build */
	bool is_made;		/* by_id is */
};

/* Take note of a symbol of the stream, of any kind. */
void seam_fast_functions_note(struct seam_fast_functions *functions,
			      const char *symbol, size_t size);

/*
 * "string.gsub", or NULL: not known.  *@in_c: it is a C function, which the
 * host's stack has as well.
 */
const char *seam_fast_functions_name(struct seam_fast_functions *functions,
				     uint64_t ffid, bool *in_c);

/*
 * Whether C function @symbol is that of the fast function called @name:
 * "lj_cf_string_gsub" of "string.gsub".
 */
bool seam_fast_functions_is(const char *name, const char *symbol);

#endif /* SEAM_FAST_FUNCTIONS_H */
