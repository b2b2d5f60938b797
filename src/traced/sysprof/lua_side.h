/* SPDX-License-Identifier: MIT */
/*
 * lua_side.h - what both APIs do in the VM that is profiled
 *
 * Threads: the VM's; not in handlers.
 */
#ifndef SEAM_SYSPROF_LUA_SIDE_H
#define SEAM_SYSPROF_LUA_SIDE_H

#include "traced/sysprof/profiler.h"

/*
 * Start for the VM of @L, which stops it when it is closed; with the
 * backtracer that the C API was given.  As seam_sysprof_start().
 */
int seam_sysprof_start_in_vm(lua_State *L,
			     const struct luam_sysprof_options *opt,
			     const struct seam_sysprof_output *output);

/* ---- lua_symbols.c ---- */

/*
 * Add the names in the VM of @L, a lua_State, to @names, after
 * seam_guest_init().  Throws no error.
 */
void seam_lua_symbols_add(void *L, struct seam_native_names *names);

/* ---- vm_code.c: after seam_guest_init() ---- */

/*
 * The code of the interpreter of LuaJIT @i, of those in use; false: there are
 * no more.
 */
bool seam_sysprof_vm_code(size_t i, uint64_t *start, uint64_t *end);

#endif /* SEAM_SYSPROF_LUA_SIDE_H */
