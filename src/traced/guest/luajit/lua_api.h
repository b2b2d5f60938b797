/* SPDX-License-Identifier: MIT */
/*
 * lua_api.h - the VM's public interface, by symbols of the image that has it
 *
 * Declared here, not by lua.h: the build needs no LuaJIT, and one process may
 * have several.
 *
 * Source: Lua 5.1 reference manual, 3 "The Application Program Interface";
 * LuaJIT's luajit.h for luaJIT_setmode().
 */
#pragma once

#include "base/base.h"

enum {
	SEAM_LUA_GLOBALS = -10002,
	SEAM_LUA_OK = 0,
	SEAM_LUA_OUT_OF_MEMORY = 4,
	SEAM_LUA_TSTRING = 4,
	SEAM_LUA_TTABLE = 5,
	SEAM_LUA_TFUNCTION = 6,
	SEAM_LUA_GC_COLLECT = 2,
};

/* Incomplete: lua_State. */
struct seam_lua;

typedef int (*seam_lua_function)(struct seam_lua *lua);
typedef void *(*seam_lua_alloc)(void *context, void *block, size_t old_size,
				size_t size);

/* lua_Debug */
struct seam_lua_debug {
	int event;
	const char *name, *namewhat, *what, *source;
	int currentline, nups, linedefined, lastlinedefined;
	char short_src[60];
	int i_ci;
};

struct seam_lua_api {
	struct seam_lua *(*newstate)(void);
	void (*openlibs)(struct seam_lua *lua);
	void (*close)(struct seam_lua *lua);
	struct seam_lua *(*newthread)(struct seam_lua *lua);
	int (*loadbuffer)(struct seam_lua *lua, const char *text, size_t size,
			  const char *name);
	int (*pcall)(struct seam_lua *lua, int n_args, int n_results,
		     int handler);
	int (*cpcall)(struct seam_lua *lua, seam_lua_function function,
		      void *context);
	void (*call)(struct seam_lua *lua, int n_args, int n_results);
	int (*resume)(struct seam_lua *lua, int n_args);
	int (*gettop)(struct seam_lua *lua);
	void (*settop)(struct seam_lua *lua, int index);
	void (*pushvalue)(struct seam_lua *lua, int index);
	void (*pushnumber)(struct seam_lua *lua, double value);
	void (*pushcclosure)(struct seam_lua *lua, seam_lua_function function,
			     int n_upvalues);
	const void *(*topointer)(struct seam_lua *lua, int index);
	const char *(*tolstring)(struct seam_lua *lua, int index,
				 size_t *size);
	int (*type)(struct seam_lua *lua, int index);
	void (*getfield)(struct seam_lua *lua, int index, const char *name);
	void (*setfield)(struct seam_lua *lua, int index, const char *name);
	int (*next)(struct seam_lua *lua, int index);
	void (*pushnil)(struct seam_lua *lua);
	int (*gc)(struct seam_lua *lua, int what, int data);
	seam_lua_alloc (*getallocf)(struct seam_lua *lua, void **context);
	void (*setallocf)(struct seam_lua *lua, seam_lua_alloc function,
			  void *context);
	int (*getstack)(struct seam_lua *lua, int level,
			struct seam_lua_debug *debug);
	int (*getinfo)(struct seam_lua *lua, const char *what,
		       struct seam_lua_debug *debug);
};

/*
 * Fill @api by @symbol.  False: the image does not have all of it, and
 * *@missing is the first name that it lacks.
 */
bool seam_lua_api_find(struct seam_lua_api *api,
		       void *(*symbol)(void *image, const char *name),
		       void *image, const char **missing);

/* Load @text, a chunk of name @name, and call it for @n_results values. */
bool seam_lua_run(const struct seam_lua_api *api, struct seam_lua *lua,
		  const char *text, const char *name, int n_results);

/*
 * Make a state, open its libraries, call @function in it, and close it.  An
 * error, as where memory runs out, ends @function, never the process; the
 * state has its own allocator then, whichever @function had set.  NULL, or why
 * it did not return.
 */
const char *seam_lua_protect(const struct seam_lua_api *api,
			     seam_lua_function function);
