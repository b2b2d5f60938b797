/* SPDX-License-Identifier: MIT */
/*
 * lua_symbols.c - names of a stripped VM's functions, from its tables
 *
 * A stripped LuaJIT has symbols of its C API alone.  Readers of a stream need
 * more: where the interpreter is, because the stacks of C and Lua join there;
 * the C functions of libraries, where they leave Lua again; and which fast
 * functions there are, because a stream has only their numbers.  Their symbols
 * in a VM that is not stripped are lj_vm_*, lj_cf_LIBRARY_NAME and
 * lj_ff_LIBRARY_NAME, and so these are called.  C functions of other modules
 * are called MODULE.NAME.
 *
 * The names are from package.loaded, and from jit.vmdef where that is
 * installed; native_symbols.h uses those that no symbol of a file covers.
 */
#include <lauxlib.h>

#include "traced/guest/luajit/luajit.h"
#include "traced/sysprof/profiler.h"

enum { MAX_FAST_FUNCTIONS = 256 };	/* their numbers have 8 bits */

/* Longer names are cut. */
enum { NAME_BYTES = 56, PREFIX_BYTES = 8 };

_Static_assert(NAME_BYTES + PREFIX_BYTES ==
	       sizeof(((struct seam_native_name *)NULL)->name),
	       "a name with its prefix fits");

/* Places in the stack of walk(). */
enum {
	WALKING = 1,
	FAST,		/* jit.vmdef.ffnames, or an empty table */
	IS_FAST,	/* its values as keys */
};

struct name_list {
	struct seam_native_names *names;
	const char *module;		/* borrowed from the VM */
};

static struct seam_native_name *add(struct name_list *w, uint64_t addr,
				    uint64_t size)
{
	struct seam_native_name *name = SEAM_ARRAY_PUSH(&w->names->list);

	if (name) {
		name->addr = addr;
		name->size = size;
	}
	return name;
}

/* "lj_cf_string_rep" of "string.rep". */
static void make_symbol(struct seam_native_name *to, const char *prefix,
			const char *name)
{
	snprintf(to->name, sizeof(to->name), "%.*s%.*s", PREFIX_BYTES - 1,
		 prefix, NAME_BYTES, name);
	for (char *dot = to->name; (dot = strchr(dot, '.')) != NULL;)
		*dot = '_';
}

/* ---- C functions of modules ---- */

/* The function at the top of the stack, called @name in the module. */
static void add_function(struct name_list *w, lua_State *L, const char *name)
{
	bool is_global = !strcmp(w->module, "_G");
	lua_CFunction function = lua_tocfunction(L, -1);
	struct seam_native_name *symbol;
	char full[NAME_BYTES];

	if (!function)
		return;
	symbol = add(w, (uint64_t)(uintptr_t)function, 0);
	if (!symbol)
		return;
	snprintf(full, sizeof(full), "%s%s%s", is_global ? "" : w->module,
		 is_global ? "" : ".", name);
	lua_pushstring(L, full);
	lua_rawget(L, IS_FAST);
	if (lua_toboolean(L, -1))
		make_symbol(symbol, "lj_cf_", full);
	else
		memcpy(symbol->name, full, sizeof(full));
	lua_pop(L, 1);
}

/* Those of the table at the top; keys stay as they are, for lua_next(). */
static void add_module(struct name_list *w, lua_State *L)
{
	if (!lua_istable(L, -1))
		return;
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		if (lua_type(L, -2) == LUA_TSTRING)
			add_function(w, L, lua_tostring(L, -2));
}

static void add_modules(struct name_list *w, lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	if (lua_istable(L, -1))
		for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
			if (lua_type(L, -2) == LUA_TSTRING) {
				w->module = lua_tostring(L, -2);
				add_module(w, L);
			}
	lua_pop(L, 1);
}

/* Methods of the object at the top, of both its metatable and __index. */
static void add_methods(struct name_list *w, lua_State *L, const char *module)
{
	w->module = module;
	if (!lua_getmetatable(L, -1))
		return;
	add_module(w, L);
	lua_pushliteral(L, "__index");
	lua_rawget(L, -2);
	add_module(w, L);
	lua_pop(L, 2);
}

/*
 * Replace the table at the top by its field, or what is no table by nil.  Raw,
 * because strict.lua and the like forbid unknown fields.
 */
static void replace_by_field(lua_State *L, const char *name)
{
	if (lua_istable(L, -1)) {
		lua_pushstring(L, name);
		lua_rawget(L, -2);
	} else {
		lua_pushnil(L);
	}
	lua_replace(L, -2);
}

/* Push a field of a module that is loaded, or nil. */
static void push_loaded(lua_State *L, const char *module, const char *field)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	replace_by_field(L, module);
	replace_by_field(L, field);
}

/* Objects of the VM's own libraries. */
static void add_objects(struct name_list *w, lua_State *L)
{
	push_loaded(L, "io", "stdout");
	add_methods(w, L, "io.method");
	push_loaded(L, "ffi", "C");
	add_methods(w, L, "ffi.clib");
	push_loaded(L, "ffi", "typeof");
	lua_pushliteral(L, "int");
	if (lua_pcall(L, 1, 1, 0) == 0)
		add_methods(w, L, "ffi.meta");
	lua_settop(L, IS_FAST);
}

/* ---- the interpreter ---- */

/* Push FAST and IS_FAST. */
static void push_fast_functions(lua_State *L)
{
	lua_pushvalue(L, LUA_GLOBALSINDEX);
	replace_by_field(L, "require");
	lua_pushliteral(L, "jit.vmdef");
	lua_pcall(L, 1, 1, 0);
	replace_by_field(L, "ffnames");
	if (!lua_istable(L, FAST)) {
		lua_newtable(L);
		lua_replace(L, FAST);
	}
	lua_newtable(L);
	for (int i = 0; i < MAX_FAST_FUNCTIONS; i++) {
		lua_rawgeti(L, FAST, i);
		if (lua_type(L, -1) != LUA_TSTRING)
			lua_pop(L, 1);
		else {
			lua_pushboolean(L, true);
			lua_rawset(L, IS_FAST);
		}
	}
}

/*
 * All fast functions at @code; those with an address of their own are there as
 * C functions already.
 */
static void add_fast_functions(struct name_list *w, lua_State *L, uint64_t code)
{
	struct seam_native_name *symbol;

	/* 0 and 1 are "Lua" and "C" */
	for (int i = 2; i < MAX_FAST_FUNCTIONS; i++) {
		lua_rawgeti(L, FAST, i);
		if (lua_type(L, -1) == LUA_TSTRING) {
			symbol = add(w, code, 0);
			if (symbol)
				make_symbol(symbol, "lj_ff_",
					    lua_tostring(L, -1));
		}
		lua_pop(L, 1);
	}
}

/* The interpreters that the handler finds, each with its fast functions. */
static void add_code(struct name_list *w, lua_State *L)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++) {
		const struct seam_guest_slot *slot = &seam_guest_slots[i];
		const struct seam_luajit_object *vm = slot->object;
		struct seam_native_name *symbol;

		if (atomic_load(&slot->state) != SEAM_GUEST_USED ||
		    slot->vm != &seam_luajit_vm)
			continue;
		add_fast_functions(w, L, vm->lj.code_start);
		/* of several with one address the last one counts */
		symbol = add(w, vm->lj.code_start,
			     vm->lj.code_end - vm->lj.code_start);
		if (symbol)
			make_symbol(symbol, "lj_vm_", "asm_begin");
	}
}

static int walk(lua_State *L)
{
	struct name_list *w = lua_touserdata(L, WALKING);

	push_fast_functions(L);
	add_modules(w, L);
	add_objects(w, L);
	add_code(w, L);
	return 0;
}

void seam_lua_symbols_add(lua_State *L, struct seam_native_names *names)
{
	struct name_list w = { .names = names };

	if (lua_cpcall(L, walk, &w))
		lua_pop(L, 1);
}
