/* SPDX-License-Identifier: MIT */
/* lua_result.c - messages of statuses; see lua_result.h */
#include "target/sysprof/lua_result.h"

#include <errno.h>
#include <string.h>

static int push(lua_State *L, const char *message, int number)
{
	lua_pushnil(L);
	lua_pushstring(L, message);
	lua_pushinteger(L, number);
	return 3;
}

int seam_sysprof_push_failure(lua_State *L, int status)
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

int seam_sysprof_push_idle(lua_State *L)
{
	return push(L, "profiler is not running", EINVAL);
}

int seam_sysprof_push_status(lua_State *L, int status)
{
	if (status != PROFILE_SUCCESS)
		return seam_sysprof_push_failure(L, status);
	lua_pushboolean(L, 1);
	return 1;
}
