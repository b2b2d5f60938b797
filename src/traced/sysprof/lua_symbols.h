/* SPDX-License-Identifier: MIT */
/*
 * lua_symbols.h - names of a stripped VM's functions, from its tables
 *
 * A stripped LuaJIT has symbols of its C API alone.  Readers of a stream need
 * more: where the interpreter is, because the stacks of C and Lua join there;
 * the C functions of libraries, where they leave Lua again; and which fast
 * functions there are, because a stream has only their numbers.  Their symbols
 * in a VM that is not stripped are lj_vm_*, lj_cf_LIBRARY_NAME and
 * lj_ff_LIBRARY_NAME, and so these are called.  C functions of other modules
 * are called MODULE.NAME.
 *
 * The names are from package.loaded, and from jit.vmdef where that is
 * installed; native_symbols.h uses those that no symbol of a file covers.
 *
 * Threads: the VM's.
 */
#ifndef SEAM_SYSPROF_LUA_SYMBOLS_H
#define SEAM_SYSPROF_LUA_SYMBOLS_H

#include <lua.h>

#include "traced/sysprof/native_symbols.h"

/*
 * Add the names in the VM of @L, a lua_State, to @names, after
 * seam_guest_init().  Throws no error.
 */
void seam_lua_symbols_add(void *L, struct seam_native_names *names);

#endif /* SEAM_SYSPROF_LUA_SYMBOLS_H */
