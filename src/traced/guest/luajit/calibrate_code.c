/* SPDX-License-Identifier: MIT */
/*
 * calibrate_code.c - functions, prototypes, strings, bytecode; see calibrate.h
 *
 * The experiments are functions whose source is known: lines, names and
 * instructions of them are looked for in their prototypes.
 */
#include "traced/guest/luajit/calibrate.h"

enum {
	MAX_PROTO = 256,	/* bytes of GCproto; it has 104 */
	FUNCTION_BYTES = 64,
	MAX_CODE = 64,		/* instructions of the functions below */
	FIRST_LINE = 6,
};

static const char chunk_name[] = "@seam-calibration.lua";

/* A prototype, and what its function was. */
struct sample_proto {
	uint64_t function, addr, code;
	uint64_t bytes;			/* of GCproto */
};

/* --- the function's code, and where its prototype begins --- */

/* The chunk's name is a string in the prototype; the text is in a string. */
static bool find_chunkname(struct seam_luajit_calibration *c,
			   const struct sample_proto *proto, size_t bytes)
{
	struct seam_luajit_places name = { .n = 0 }, text = { .n = 0 };
	struct seam_luajit_places len = { .n = 0 };
	uint64_t string = 0;

	for (size_t o = 16; o < bytes; o += 8) {
		uint64_t word = seam_luajit_word(c, proto->code - bytes + o);

		for (size_t t = 16; t <= 40; t += 4)
			if (seam_luajit_is(&c->memory, word,
					   SEAM_LUAJIT_STRING) &&
			    seam_luajit_has_text(c, word + t, chunk_name)) {
				seam_luajit_place(&name, true, o);
				seam_luajit_place(&text, true, t);
				string = word;
			}
	}
	for (size_t o = 12; name.n == 1 && o < text.at; o += 4)
		seam_luajit_place(&len, seam_luajit_half(c, string + o) ==
				  sizeof(chunk_name) - 1, o);
	c->layout->at.pt_chunkname = name.at;
	c->layout->at.s_bytes = text.at;
	c->layout->at.s_len = len.at;
	return name.n == 1 && len.n == 1;
}

/* Lines of the definition: first, and how many more. */
static bool find_firstline(struct seam_luajit_calibration *c,
			   const struct sample_proto *proto, size_t bytes,
			   uint32_t n_lines)
{
	struct seam_luajit_places line = { .n = 0 };

	for (size_t o = 16; o + 8 <= bytes; o += 4) {
		uint64_t addr = proto->code - bytes + o;

		seam_luajit_place(&line,
				  seam_luajit_half(c, addr) == FIRST_LINE &&
				  seam_luajit_half(c, addr + 4) == n_lines, o);
	}
	c->layout->at.pt_firstline = line.at;
	c->layout->at.pt_numline = (uint16_t)(line.at + 4);
	return line.n == 1;
}

/*
 * A word of a Lua function is the address of its code, which is behind its
 * prototype.
 */
static bool find_proto(struct seam_luajit_calibration *c, uint64_t function,
		       uint32_t n_lines, struct sample_proto *proto)
{
	struct seam_luajit_places code = { .n = 0 };
	uint16_t found = 0;

	for (size_t o = 16; o < FUNCTION_BYTES; o += 8) {
		proto->code = seam_luajit_word(c, function + o);
		for (size_t bytes = 64; bytes <= MAX_PROTO &&
		     proto->code > bytes && !(proto->code & 3); bytes += 8) {
			if (!seam_luajit_is(&c->memory, proto->code - bytes,
					    SEAM_LUAJIT_PROTO) ||
			    !find_chunkname(c, proto, bytes) ||
			    !find_firstline(c, proto, bytes, n_lines))
				continue;
			seam_luajit_place(&code, true, o);
			found = (uint16_t)bytes;
		}
	}
	if (!seam_luajit_only(c, &code, "GCfuncL.pc", &c->layout->at.f_pc))
		return false;
	c->layout->at.pt_bytes = found;
	proto->function = function;
	proto->bytes = found;
	proto->code = seam_luajit_word(c, function + code.at);
	proto->addr = proto->code - found;
	return find_chunkname(c, proto, found) &&
	       find_firstline(c, proto, found, n_lines);
}

/* Push a function of @text on line FIRST_LINE; where it is. */
static uint64_t make_function(struct seam_luajit_calibration *c,
			      const char *text)
{
	char chunk[512];

	snprintf(chunk, sizeof(chunk),
		 "local seam_up\n\n\n\n\nreturn function(seam_a, seam_b)%s",
		 text);
	return seam_lua_run(c->api, c->lua, chunk, chunk_name, 1) ?
	       (uint64_t)(uintptr_t)c->api->topointer(c->lua, -1) : 0;
}

/* --- what is in a prototype --- */

/* Ten instructions more add ten to it. */
static bool find_sizebc(struct seam_luajit_calibration *c,
			const struct sample_proto *proto)
{
	struct seam_luajit_places places = { .n = 0 };
	uint64_t longer = make_function(c, "\nseam_a=seam_b seam_a=seam_b "
		"seam_a=seam_b seam_a=seam_b seam_a=seam_b seam_a=seam_b "
		"seam_a=seam_b seam_a=seam_b seam_a=seam_b seam_a=seam_b "
		"seam_global() seam_a.seam_field() seam_up() seam_b() "
		"seam_a=2.5\nend");
	uint64_t addr = longer ? seam_luajit_word(c, longer +
				c->layout->at.f_pc) - proto->bytes : 0;

	for (size_t o = 12; o < proto->bytes; o += 4) {
		uint32_t n = seam_luajit_half(c, proto->addr + o);

		seam_luajit_place(&places, n >= 8 && n < MAX_CODE &&
				  seam_luajit_half(c, addr + o) == n + 10, o);
	}
	c->api->settop(c->lua, -2);
	return seam_luajit_only(c, &places, "GCproto.sizebc",
				&c->layout->at.pt_sizebc);
}

/*
 * The constants' array points behind the name of the global, and before the
 * number.
 */
static bool find_k(struct seam_luajit_calibration *c,
		   const struct sample_proto *proto)
{
	struct seam_luajit_places places = { .n = 0 };

	for (size_t o = 16; o < proto->bytes; o += 8) {
		uint64_t k = seam_luajit_word(c, proto->addr + o);
		uint64_t string = k & 7 ? 0 : seam_luajit_word(c, k - 8);

		seam_luajit_place(&places, string && seam_luajit_has_text(c,
			string + c->layout->at.s_bytes, "seam_global"), o);
	}
	return seam_luajit_only(c, &places, "GCproto.k",
				&c->layout->at.pt_k);
}

/* Names of variables are where their texts are; lines are in front of them. */
static bool find_debug_info(struct seam_luajit_calibration *c,
			    const struct sample_proto *proto)
{
	struct seam_luajit_places lines = { .n = 0 }, up = { .n = 0 };
	struct seam_luajit_places vars = { .n = 0 };
	uint64_t n = seam_luajit_half(c, proto->addr +
				      c->layout->at.pt_sizebc);
	uint64_t code_end = proto->code + 4 * n;

	for (size_t o = 16; o < proto->bytes; o += 8) {
		uint64_t word = seam_luajit_word(c, proto->addr + o);
		uint8_t first = 0, last = 0;

		seam_luajit_place(&up, seam_luajit_has_text(c, word,
							    "seam_up"), o);
		seam_luajit_place(&vars, seam_luajit_has_text(c, word,
							      "seam_a"), o);
		/* a byte each: line 7, from 6 on, and the end's */
		seam_luajit_place(&lines, word > code_end &&
			word < code_end + 1024 &&
			seam_guest_u8(&c->memory, word, &first) &&
			seam_guest_u8(&c->memory, word + n - 2, &last) &&
			first == 1 && last == 2, o);
	}
	return seam_luajit_only(c, &lines, "GCproto.lineinfo",
				&c->layout->at.pt_lineinfo) &&
	       seam_luajit_only(c, &up, "GCproto.uvinfo",
				&c->layout->at.pt_uvinfo) &&
	       seam_luajit_only(c, &vars, "GCproto.varinfo",
				&c->layout->at.pt_varinfo);
}

/*
 * seam_global() seam_a.seam_field() seam_up() seam_b(): for each the
 * instruction that loads the function, and the same call.
 */
static bool find_opcodes(struct seam_luajit_calibration *c,
			 const struct sample_proto *proto)
{
	uint8_t op[9];

	for (size_t i = 0; i < sizeof(op); i++)
		op[i] = (uint8_t)seam_luajit_half(c, proto->code + 4 * i);
	if (op[2] != op[4] || op[2] != op[6] || op[2] != op[8])
		return seam_luajit_refuse(c, "bytecode of four calls differs "
					  "from LuaJIT's");
	c->layout->op = (struct seam_luajit_opcodes) {
		.gget = op[1], .tgets = op[3], .uget = op[5], .mov = op[7],
		.call = op[2] };
	return true;
}

/* --- functions of C --- */

static int do_nothing(struct seam_lua *lua)
{
	(void)lua;
	return 0;
}

static bool find_c_function(struct seam_luajit_calibration *c)
{
	struct seam_luajit_places places = { .n = 0 };
	uint64_t function;

	c->api->pushcclosure(c->lua, do_nothing, 0);
	function = (uint64_t)(uintptr_t)c->api->topointer(c->lua, -1);
	for (size_t o = 16; o < FUNCTION_BYTES; o += 8)
		seam_luajit_place(&places, seam_luajit_word(c, function + o) ==
				  (uint64_t)(uintptr_t)do_nothing, o);
	c->api->settop(c->lua, -2);
	return seam_luajit_only(c, &places, "GCfuncC.f",
				&c->layout->at.f_c);
}

/* Names of the built-in functions in a table, by their numbers. */
static void name_builtins(struct seam_luajit_calibration *c,
			  const char *library)
{
	const struct seam_lua_api *api = c->api;

	if (api->type(c->lua, -1) != SEAM_LUA_TTABLE)
		return;
	for (api->pushnil(c->lua); api->next(c->lua, -2);
	     api->settop(c->lua, -2)) {
		uint64_t addr = (uint64_t)(uintptr_t)
				api->topointer(c->lua, -1);
		uint8_t number = 0;

		/* lua_tolstring() would change a key that is a number */
		if (api->type(c->lua, -1) != SEAM_LUA_TFUNCTION ||
		    api->type(c->lua, -2) != SEAM_LUA_TSTRING ||
		    !seam_guest_u8(&c->memory, addr + 10, &number) ||
		    number < 2)
			continue;
		snprintf(c->layout->builtins[number], SEAM_LUAJIT_BUILTIN_NAME,
			 "%s%s%s", library, *library ? "." : "",
			 api->tolstring(c->lua, -2, NULL));
	}
}

/*
 * Those that no library's table names: methods of files, operations of the FFI,
 * what other functions return, the VM's modules that are loaded on request.
 */
static void name_methods(struct seam_luajit_calibration *c)
{
	static const char text[] =
		"local function module(name)\n"
		"  local is_made, made = pcall(package.preload[name], name)\n"
		"  return is_made and made or nil\n"
		"end\n"
		"local of = debug.getmetatable\n"
		"local tables = {\n"
		"  [''] = { ipairs_aux = ipairs {} }, table = {},\n"
		"  string = { gmatch_aux = string.gmatch('', '') },\n"
		"  coroutine = { wrap_aux = coroutine.wrap(print) },\n"
		"  ['io.method'] = of(io.stdout), ['jit.opt'] = jit.opt,\n"
		"  ['jit.util'] = module 'jit.util',\n"
		"  ['jit.profile'] = module 'jit.profile',\n"
		"  thread = { exdata = module 'thread.exdata',\n"
		"             exdata2 = module 'thread.exdata2' },\n"
		"  ffi = module 'ffi', buffer = module 'string.buffer' }\n"
		"for key in ('new clear clone isarray isempty nkeys')\n"
		"           :gmatch '%a+' do\n"
		"  tables.table[key] = module('table.' .. key)\n"
		"end\n"
		"if tables.ffi then\n"
		"  tables['ffi.clib'] = of(tables.ffi.C)\n"
		"  tables['ffi.meta'] = of(tables.ffi.new('int'))\n"
		"end\n"
		"if tables.buffer then\n"
		"  tables['buffer.method'] = of(tables.buffer.new())\n"
		"end\n"
		"return tables\n";
	const struct seam_lua_api *api = c->api;

	if (api->loadbuffer(c->lua, text, sizeof(text) - 1, "=methods") == 0 &&
	    api->pcall(c->lua, 0, 1, 0) == 0)
		for (api->pushnil(c->lua); api->next(c->lua, -2);
		     api->settop(c->lua, -2))
			name_builtins(c, api->tolstring(c->lua, -2, NULL));
	api->settop(c->lua, -2);
}

static void find_builtins(struct seam_luajit_calibration *c)
{
	static const char *const libraries[] = {
		"string", "table", "math", "coroutine", "os", "io", "debug",
		"bit", "jit", "package", "ffi",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(libraries); i++) {
		c->api->getfield(c->lua, SEAM_LUA_GLOBALS, libraries[i]);
		name_builtins(c, libraries[i]);
		c->api->settop(c->lua, -2);
	}
	name_methods(c);
	c->api->pushvalue(c->lua, SEAM_LUA_GLOBALS);
	name_builtins(c, "");
	c->api->settop(c->lua, -2);
}

/* --- the C frame's member for the bytecode's address --- */

static struct {
	struct seam_luajit_calibration *c;
	seam_lua_alloc alloc;
	void *context;
	uint64_t code, code_end;
	struct seam_luajit_places places;
} during;

/* Called for the table that a Lua function makes. */
static void *look_at_pc(void *context, void *block, size_t old_size,
			size_t size)
{
	struct seam_luajit_calibration *c = during.c;
	uint64_t cframe = seam_luajit_word(c, c->l + c->layout->at.l_cframe) &
			  ~UINT64_C(3);

	(void)context;
	for (size_t o = 0; cframe && !during.places.n &&
	     o < c->layout->at.cf_bytes; o += 8) {
		uint64_t word = seam_luajit_word(c, cframe + o);

		seam_luajit_place(&during.places, word > during.code &&
				  word <= during.code_end, o);
	}
	return during.alloc(during.context, block, old_size, size);
}

static bool find_frame_pc(struct seam_luajit_calibration *c)
{
	uint64_t function = make_function(c, " return {seam_b, 1, 2, 3} end");
	int r;

	during.c = c;
	during.places = (struct seam_luajit_places) { .n = 0 };
	during.code = seam_luajit_word(c, function + c->layout->at.f_pc);
	during.code_end = during.code + 4 * (uint64_t)
		seam_luajit_half(c, during.code - c->layout->at.pt_bytes +
				 c->layout->at.pt_sizebc);
	during.alloc = c->api->getallocf(c->lua, &during.context);
	c->api->setallocf(c->lua, look_at_pc, NULL);
	r = c->api->pcall(c->lua, 0, 0, 0);
	c->api->setallocf(c->lua, during.alloc, during.context);
	if (r != SEAM_LUA_OK)
		return seam_luajit_refuse(c, "a function does not run");
	return seam_luajit_only(c, &during.places, "the C frame's bytecode "
				"address", &c->layout->at.cf_pc);
}

bool seam_luajit_calibrate_code(struct seam_luajit_calibration *c)
{
	struct sample_proto proto;
	uint64_t function = make_function(c, "\nseam_global() "
		"seam_a.seam_field() seam_up() seam_b() seam_a=2.5\nend");
	bool is_found;

	if (!function)
		return seam_luajit_refuse(c, "a chunk does not run");
	is_found = find_proto(c, function, 2, &proto) &&
		   find_sizebc(c, &proto) && find_k(c, &proto) &&
		   find_debug_info(c, &proto) && find_opcodes(c, &proto) &&
		   find_c_function(c) && find_frame_pc(c);
	if (is_found)
		find_builtins(c);
	return is_found;
}
