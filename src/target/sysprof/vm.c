/* SPDX-License-Identifier: MIT */
/* vm.c - an object with a finalizer; see vm.h */
#include "target/sysprof/vm.h"

#include "target/sysprof/profiler.h"

#define REGISTRY_KEY	"seam.sysprof"

const void *seam_sysprof_vm_id(lua_State *L)
{
	return lua_topointer(L, LUA_REGISTRYINDEX);
}

/* A run of another VM goes on: it has another identity. */
static int stop_run(lua_State *L)
{
	seam_sysprof_stop(seam_sysprof_vm_id(L));
	return 0;
}

static int make_guard(lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_KEY);
	if (lua_touserdata(L, -1))
		return 0;
	lua_newuserdata(L, 1);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, stop_run);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_KEY);
	return 0;
}

bool seam_sysprof_vm_guard(lua_State *L)
{
	if (lua_cpcall(L, make_guard, NULL) == 0)
		return true;
	lua_pop(L, 1);
	return false;
}
