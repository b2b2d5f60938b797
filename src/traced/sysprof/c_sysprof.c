/* SPDX-License-Identifier: MIT */
/*
 * c_sysprof.c - the functions of <seam/lmisclib.h>
 *
 * The profiler has to stop before the VM is freed: an object in the registry
 * has a finalizer that stops it, which lua_close() calls.
 */
#include "traced/sysprof/lua_side.h"

#define REGISTRY_KEY	"seam.sysprof"

/* Changed by the caller's thread, while the profiler is idle. */
static struct luam_sysprof_config configured;

int luaM_sysprof_configure(const struct luam_sysprof_config *config)
{
	if (!config || !seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured = *config;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
	if (!writer || !seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured.writer = writer;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
	if (!on_stop || !seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured.on_stop = on_stop;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
	if (!seam_sysprof_is_idle())
		return PROFILE_ERRUSE;
	configured.backtracer = backtracer;
	return PROFILE_SUCCESS;
}

/* ---- a VM ---- */

/* The same for all coroutines of a VM. */
static const void *id_of(lua_State *L)
{
	return lua_topointer(L, LUA_REGISTRYINDEX);
}

/* A run of another VM goes on: it has another identity. */
static int stop_run(lua_State *L)
{
	seam_sysprof_stop(id_of(L));
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

/* Make the object, unless it is there.  Throws no error.  False: no memory. */
static bool guard(lua_State *L)
{
	if (lua_cpcall(L, make_guard, NULL) == 0)
		return true;
	lua_pop(L, 1);
	return false;
}

int seam_sysprof_start_in_vm(lua_State *L,
			     const struct luam_sysprof_options *opt,
			     const struct seam_sysprof_output *output)
{
	struct seam_sysprof_output named = *output;

	if (!guard(L)) {
		if (output->on_stop)
			output->on_stop(opt ? opt->ctx : NULL,
					opt ? opt->buf : NULL);
		return PROFILE_ERRMEM;
	}
	named.add_names = seam_lua_symbols_add;
	named.names_vm = L;
	return seam_sysprof_start(id_of(L), opt, &named, configured.backtracer);
}

int luaM_sysprof_start(lua_State *L, const struct luam_sysprof_options *opt)
{
	struct seam_sysprof_output output = {
		.writer = configured.writer, .on_stop = configured.on_stop,
		.enough = SIZE_MAX };

	return seam_sysprof_start_in_vm(L, opt, &output);
}

int luaM_sysprof_stop(lua_State *L)
{
	return seam_sysprof_stop(id_of(L));
}

int luaM_sysprof_report(struct luam_sysprof_counters *counters)
{
	return seam_sysprof_count(counters);
}
