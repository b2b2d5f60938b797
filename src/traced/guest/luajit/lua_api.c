/* SPDX-License-Identifier: MIT */
/* lua_api.c - the VM's public interface; see lua_api.h */
#include "traced/guest/luajit/lua_api.h"

#define F(member, symbol) { #symbol, offsetof(struct seam_lua_api, member) }

bool seam_lua_api_find(struct seam_lua_api *api,
		       void *(*symbol)(void *image, const char *name),
		       void *image, const char **missing)
{
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
		F(newstate, luaL_newstate), F(openlibs, luaL_openlibs),
		F(close, lua_close), F(newthread, lua_newthread),
		F(loadbuffer, luaL_loadbuffer), F(pcall, lua_pcall),
		F(cpcall, lua_cpcall),
		F(call, lua_call), F(resume, lua_resume),
		F(gettop, lua_gettop), F(settop, lua_settop),
		F(pushvalue, lua_pushvalue), F(pushnumber, lua_pushnumber),
		F(pushcclosure, lua_pushcclosure),
		F(topointer, lua_topointer),
		F(tolstring, lua_tolstring), F(type, lua_type),
		F(getfield, lua_getfield), F(setfield, lua_setfield),
		F(next, lua_next), F(pushnil, lua_pushnil), F(gc, lua_gc),
		F(getallocf, lua_getallocf), F(setallocf, lua_setallocf),
		F(getstack, lua_getstack), F(getinfo, lua_getinfo),
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(functions); i++) {
		void *found = symbol(image, functions[i].name);

		if (!found) {
			*missing = functions[i].name;
			return false;
		}
		memcpy((char *)api + functions[i].offset, &found,
		       sizeof(found));
	}
	return true;
}

bool seam_lua_run(const struct seam_lua_api *api, struct seam_lua *lua,
		  const char *text, const char *name, int n_results)
{
	return api->loadbuffer(lua, text, strlen(text), name) == SEAM_LUA_OK &&
	       api->pcall(lua, 0, n_results, 0) == SEAM_LUA_OK;
}

const char *seam_lua_protect(const struct seam_lua_api *api,
			     seam_lua_function function)
{
	struct seam_lua *lua = api->newstate();
	seam_lua_alloc alloc;
	void *context;
	int r;

	if (!lua)
		return "cannot make a state";
	alloc = api->getallocf(lua, &context);
	r = api->cpcall(lua, function, NULL);
	/* that of an experiment which was ended has no context any more */
	api->setallocf(lua, alloc, context);
	api->close(lua);
	return r == SEAM_LUA_OK ? NULL :
	       r == SEAM_LUA_OUT_OF_MEMORY ? "out of memory" :
					     "an experiment failed";
}
