/* SPDX-License-Identifier: MIT */
/* lua_modules.h - the functions of seam.sysprof; see seam-sysprof(3) */
#ifndef SEAM_SYSPROF_LUA_MODULES_H
#define SEAM_SYSPROF_LUA_MODULES_H

#include <lauxlib.h>

#include <seam/lmisclib.h>

/* Ends with a name of NULL.  A build without the profiler has others. */
extern const luaL_Reg seam_sysprof_functions[];

#endif /* SEAM_SYSPROF_LUA_MODULES_H */
