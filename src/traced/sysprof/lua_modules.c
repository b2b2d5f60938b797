/* SPDX-License-Identifier: MIT */
/*
 * lua_modules.c - the openers of seam.sysprof and seam.misc
 *
 * require() finds them in seam.so, which is this library by another name: its
 * loader looks for a module a.b in the library of a too.
 */
#include <lauxlib.h>

#include "traced/sysprof/lua_modules.h"

int luaopen_seam_sysprof(lua_State *L)
{
	const luaL_Reg *function = seam_sysprof_functions;

	lua_newtable(L);
	for (; function->name; function++) {
		lua_pushcfunction(L, function->func);
		lua_setfield(L, -2, function->name);
	}
	return 1;
}

/*
 * Set misc.sysprof.  The table is the global one, if there is one; globals are
 * read and set raw, because strict.lua and the like forbid unknown ones.
 */
int luaopen_seam_misc(lua_State *L)
{
	lua_pushliteral(L, "misc");
	lua_rawget(L, LUA_GLOBALSINDEX);
	if (!lua_istable(L, -1)) {
		lua_newtable(L);
		lua_pushliteral(L, "misc");
		lua_pushvalue(L, -2);
		lua_rawset(L, LUA_GLOBALSINDEX);
	}
	/* one table of functions in both modules */
	lua_getglobal(L, "require");
	lua_pushliteral(L, "seam.sysprof");
	lua_call(L, 1, 1);
	lua_setfield(L, -2, "sysprof");
	return 1;
}
