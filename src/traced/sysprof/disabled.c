/* SPDX-License-Identifier: MIT */
/*
 * disabled.c - both APIs in a build without the profiler (-Dsysprof=false)
 *
 * start() and stop() return false, as the RFC says; the rest fails.
 */
#include <errno.h>

#include "traced/sysprof/lua_modules.h"

int luaM_sysprof_configure(const struct luam_sysprof_config *config)
{
	(void)config;
	return PROFILE_ERRUSE;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
	(void)writer;
	return PROFILE_ERRUSE;
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
	(void)on_stop;
	return PROFILE_ERRUSE;
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
	(void)backtracer;
	return PROFILE_ERRUSE;
}

int luaM_sysprof_start(lua_State *L, const struct luam_sysprof_options *opt)
{
	(void)L;
	(void)opt;
	return PROFILE_ERRUSE;
}

int luaM_sysprof_stop(lua_State *L)
{
	(void)L;
	return PROFILE_ERRUSE;
}

int luaM_sysprof_report(struct luam_sysprof_counters *counters)
{
	(void)counters;
	return PROFILE_ERRUSE;
}

const char *seam_sysprof_refusal(void)
{
	return "built without the profiler";
}

static int push_false(lua_State *L)
{
	lua_pushboolean(L, 0);
	return 1;
}

static int report(lua_State *L)
{
	lua_pushnil(L);
	lua_pushliteral(L, "profiler misuse");
	lua_pushinteger(L, EINVAL);
	return 3;
}

const luaL_Reg seam_sysprof_functions[] = {
	{ "start", push_false }, { "stop", push_false }, { "report", report },
	{ NULL, NULL },
};
