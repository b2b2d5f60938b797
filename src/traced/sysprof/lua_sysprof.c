/* SPDX-License-Identifier: MIT */
/*
 * lua_sysprof.c - the Lua modules seam.sysprof and seam.misc
 *
 * Functions of Lua's C API are undefined symbols of the library: the dynamic
 * linker finds them in the program, or in its libluajit.
 */
#include <errno.h>
#include <string.h>

#include <lauxlib.h>

#include "traced/sysprof/lua_modules.h"
#include "traced/sysprof/start_in_vm.h"
#include "traced/sysprof/stream_file.h"
#include "wire/vmstate.h"

enum { DEFAULT_INTERVAL = 10 };	/* ms */

#define DEFAULT_PATH	"sysprof.bin"

/* ---- results: true; or nil, a message and an errno, as of io.open() ---- */

static int push(lua_State *L, const char *message, int number)
{
	lua_pushnil(L);
	lua_pushstring(L, message);
	lua_pushinteger(L, number);
	return 3;
}

/* @status: of <seam/lmisclib.h>; errno with PROFILE_ERRIO. */
static int push_failure(lua_State *L, int status)
{
	int error = status == PROFILE_ERRMEM ? ENOMEM : errno;
	const char *refusal = seam_sysprof_refusal();

	if (status == PROFILE_ERRUSE)
		return push(L, "profiler misuse", EINVAL);
	if (status == PROFILE_ERRRUN)
		return push(L, "profiler is running already", EINVAL);
	if (error == ENOTSUP && refusal)
		return push(L, refusal, error);
	return push(L, strerror(error), error);
}

static int push_idle(lua_State *L)
{
	return push(L, "profiler is not running", EINVAL);
}

static int push_status(lua_State *L, int status)
{
	if (status != PROFILE_SUCCESS)
		return push_failure(L, status);
	lua_pushboolean(L, 1);
	return 1;
}

/* ---- options ---- */

/* Push the field of the table at 1, as rawget() has it; its type. */
static int push_field(lua_State *L, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, 1);
	return lua_type(L, -1);
}

static bool parse_mode(lua_State *L, struct luam_sysprof_options *opt)
{
	static const char letters[] = "DLC";	/* in the order of the enum */
	const char *text, *found = NULL;
	size_t n;

	if (push_field(L, "mode") == LUA_TSTRING) {
		text = lua_tolstring(L, -1, &n);
		found = n == 1 ? memchr(letters, *text, 3) : NULL;
	}
	lua_pop(L, 1);
	if (found)
		opt->mode = (enum luam_sysprof_mode)(found - letters);
	return found;
}

/* A number is cut to an integer; what is no number is the default. */
static bool parse_interval(lua_State *L, struct luam_sysprof_options *opt)
{
	double ms = DEFAULT_INTERVAL;

	if (push_field(L, "interval") == LUA_TNUMBER)
		ms = lua_tonumber(L, -1);
	lua_pop(L, 1);
	/* also false for NaN */
	if (!(ms >= 1 && ms < (double)INT32_MAX + 1))
		return false;
	opt->interval = (uint64_t)ms;
	return true;
}

/* The path stays on the stack.  NULL: it is none. */
static const char *parse_path(lua_State *L)
{
	size_t n = 0;
	const char *path = DEFAULT_PATH;
	int type = push_field(L, "path");

	if (type == LUA_TNIL)
		return path;
	path = type == LUA_TSTRING ? lua_tolstring(L, -1, &n) : NULL;
	return path && !memchr(path, 0, n) ? path : NULL;
}

/* ---- the functions ---- */

static int start(lua_State *L)
{
	struct luam_sysprof_options opt = { .mode = LUAM_SYSPROF_DEFAULT };
	struct seam_sysprof_output output = { .enough = SIZE_MAX };
	const char *path;

	if (lua_gettop(L) != 1 || !lua_istable(L, 1) || !parse_mode(L, &opt) ||
	    !parse_interval(L, &opt))
		return push_failure(L, PROFILE_ERRUSE);
	if (opt.mode != LUAM_SYSPROF_DEFAULT) {
		path = parse_path(L);
		if (!path)
			return push_failure(L, PROFILE_ERRUSE);
		if (seam_sysprof_stream_file(path, &opt, &output) < 0)
			return push_failure(L, PROFILE_ERRMEM);
	}
	return push_status(L, seam_sysprof_start_in_vm(L, &opt, &output));
}

static int stop(lua_State *L)
{
	int status = luaM_sysprof_stop(L);

	if (status == PROFILE_ERRRUN)
		return push_idle(L);
	return push_status(L, status);
}

static int report(lua_State *L)
{
	struct luam_sysprof_counters counters;
	const uint64_t *counts = &counters.vmst_interp;

	if (luaM_sysprof_report(&counters) != PROFILE_SUCCESS)
		return push_failure(L, PROFILE_ERRUSE);
	lua_createtable(L, 0, 2);
	lua_pushnumber(L, (double)counters.samples);
	lua_setfield(L, -2, "samples");
	lua_createtable(L, 0, SEAM_N_VMSTATES);
	for (unsigned int i = 0; i < SEAM_N_VMSTATES; i++) {
		lua_pushnumber(L, (double)counts[i]);
		lua_setfield(L, -2, seam_vmstate_name(i));
	}
	lua_setfield(L, -2, "vmstate");
	return 1;
}

const luaL_Reg seam_sysprof_functions[] = {
	{ "start", start }, { "stop", stop }, { "report", report },
	{ NULL, NULL },
};
