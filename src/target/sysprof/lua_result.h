/* SPDX-License-Identifier: MIT */
/*
 * lua_result.h - what the Lua functions return
 *
 * true; or nil, a message and an errno, as io.open() does.
 */
#ifndef SEAM_SYSPROF_LUA_RESULT_H
#define SEAM_SYSPROF_LUA_RESULT_H

#include <seam/lmisclib.h>

/*
 * Push the results, and return their number.  @status: of <seam/lmisclib.h>;
 * errno with PROFILE_ERRIO.
 */
int seam_sysprof_push_status(lua_State *L, int status);
int seam_sysprof_push_failure(lua_State *L, int status);

/* The failure of a stop of what does not run. */
int seam_sysprof_push_idle(lua_State *L);

#endif /* SEAM_SYSPROF_LUA_RESULT_H */
