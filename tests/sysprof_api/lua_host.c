/* SPDX-License-Identifier: MIT */
/*
 * lua_host.c - a program that embeds LuaJIT, and has sysprof linked statically
 *
 *	lua_host SCRIPT [ARGUMENT]...
 *
 * lua_pcall() of the script is all that is on its stack below main().  The
 * script has call(f, ...) and pcall_in_c(f, ...), by which C calls Lua.
 */
#include <stdio.h>

#include <lauxlib.h>
#include <lualib.h>
#include <seam/lmisclib.h>

static int call(lua_State *L)
{
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

static int pcall_in_c(lua_State *L)
{
	lua_pushboolean(L, !lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0));
	lua_insert(L, 1);
	return lua_gettop(L);
}

static void preload(lua_State *L, const char *name, lua_CFunction open)
{
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "preload");
	lua_pushcfunction(L, open);
	lua_setfield(L, -2, name);
	lua_pop(L, 2);
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int status;

	luaL_openlibs(L);
	preload(L, "seam.sysprof", luaopen_seam_sysprof);
	preload(L, "seam.misc", luaopen_seam_misc);
	lua_register(L, "call", call);
	lua_register(L, "pcall_in_c", pcall_in_c);
	lua_newtable(L);
	for (int i = 1; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - 1);
	}
	lua_setglobal(L, "arg");
	status = luaL_loadfile(L, argv[1]) || lua_pcall(L, 0, 0, 0);
	if (status)
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
	lua_close(L);
	return status;
}
