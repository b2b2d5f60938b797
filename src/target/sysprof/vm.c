/* SPDX-License-Identifier: MIT */
/* vm.c - an object with a finalizer; see vm.h */
#include "target/sysprof/vm.h"

#include "target/sysprof/profiler.h"

#define REGISTRY_KEY	"seam.sysprof"

const void *seam_sysprof_vm_id(lua_State *L)
{
	return lua_topointer(L, LUA_REGISTRYINDEX);
}

static int stop_run(lua_State *L)
{
	const uint64_t *number = lua_touserdata(L, 1);

	if (number && *number && *number == seam_sysprof_run_number())
		seam_sysprof_stop(seam_sysprof_vm_id(L));
	return 0;
}

/* Its argument is where the guard's address is stored. */
static int make_guard(lua_State *L)
{
	uint64_t **guard = lua_touserdata(L, 1);

	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_KEY);
	if (!lua_touserdata(L, -1)) {
		*(uint64_t *)lua_newuserdata(L, sizeof(uint64_t)) = 0;
		lua_createtable(L, 0, 1);
		lua_pushcfunction(L, stop_run);
		lua_setfield(L, -2, "__gc");
		lua_setmetatable(L, -2);
		lua_pushvalue(L, -1);
		lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_KEY);
	}
	*guard = lua_touserdata(L, -1);
	return 0;
}

uint64_t *seam_sysprof_vm_guard(lua_State *L)
{
	uint64_t *guard = NULL;

	if (lua_cpcall(L, make_guard, &guard)) {
		lua_pop(L, 1);
		return NULL;
	}
	return guard;
}
