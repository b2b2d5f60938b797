/* SPDX-License-Identifier: MIT */
/* fast_functions.c - the order of definition; see fast_functions.h */
#include "model/sysprof/fast_functions.h"

/* All functions of the known builds, in the order in which they get numbers. */
static const char *const order[] = {
	"assert", "type", "next", "pairs", "ipairs_aux", "ipairs",
	"getmetatable", "setmetatable", "getfenv", "setfenv", "rawget",
	"rawset", "rawequal", "unpack", "select", "tonumber", "tostring",
	"error", "pcall", "xpcall", "loadfile", "load", "loadstring",
	"dofile", "gcinfo", "collectgarbage", "newproxy", "print",
	"coroutine.status", "coroutine.running", "coroutine.isyieldable",
	"coroutine.create", "coroutine.yield", "coroutine.resume",
	"coroutine.wrap_aux", "coroutine.wrap", "thread.exdata",
	"thread.exdata2", "math.abs", "math.floor", "math.ceil", "math.sqrt",
	"math.log10", "math.exp", "math.sin", "math.cos", "math.tan",
	"math.asin", "math.acos", "math.atan", "math.sinh", "math.cosh",
	"math.tanh", "math.frexp", "math.modf", "math.log", "math.atan2",
	"math.pow", "math.fmod", "math.ldexp", "math.min", "math.max",
	"math.random", "math.randomseed", "bit.tobit", "bit.bnot",
	"bit.bswap", "bit.lshift", "bit.rshift", "bit.arshift", "bit.rol",
	"bit.ror", "bit.band", "bit.bor", "bit.bxor", "bit.tohex",
	"string.byte", "string.char", "string.sub", "string.rep",
	"string.reverse", "string.lower", "string.upper", "string.dump",
	"string.find", "string.match", "string.gmatch_aux", "string.gmatch",
	"string.gsub", "string.format", "table.maxn", "table.insert",
	"table.concat", "table.clone", "table.isarray", "table.nkeys",
	"table.isempty", "table.sort", "table.new", "table.clear",
	"io.method.close", "io.method.read", "io.method.write",
	"io.method.flush", "io.method.seek", "io.method.setvbuf",
	"io.method.lines", "io.method.__gc", "io.method.__tostring",
	"io.open", "io.popen", "io.tmpfile", "io.close", "io.read",
	"io.write", "io.flush", "io.input", "io.output", "io.lines",
	"io.type", "os.execute", "os.remove", "os.rename", "os.tmpname",
	"os.getenv", "os.exit", "os.clock", "os.date", "os.time",
	"os.difftime", "os.setlocale", "debug.getregistry",
	"debug.getmetatable", "debug.setmetatable", "debug.getfenv",
	"debug.setfenv", "debug.getinfo", "debug.getlocal", "debug.setlocal",
	"debug.getupvalue", "debug.setupvalue", "debug.upvalueid",
	"debug.upvaluejoin", "debug.sethook", "debug.gethook", "debug.debug",
	"debug.traceback", "jit.on", "jit.off", "jit.flush", "jit.status",
	"jit.security", "jit.attach", "jit.prngstate", "jit.util.funcinfo",
	"jit.util.funcbc", "jit.util.funck", "jit.util.funcuvname",
	"jit.util.traceinfo", "jit.util.traceir", "jit.util.tracek",
	"jit.util.tracesnap", "jit.util.tracemc", "jit.util.traceexitstub",
	"jit.util.ircalladdr", "jit.opt.start", "jit.profile.start",
	"jit.profile.stop", "jit.profile.dumpstack", "ffi.meta.__index",
	"ffi.meta.__newindex", "ffi.meta.__eq", "ffi.meta.__len",
	"ffi.meta.__lt", "ffi.meta.__le", "ffi.meta.__concat",
	"ffi.meta.__call", "ffi.meta.__add", "ffi.meta.__sub",
	"ffi.meta.__mul", "ffi.meta.__div", "ffi.meta.__mod",
	"ffi.meta.__pow", "ffi.meta.__unm", "ffi.meta.__tostring",
	"ffi.meta.__pairs", "ffi.meta.__ipairs", "ffi.clib.__index",
	"ffi.clib.__newindex", "ffi.clib.__gc", "ffi.callback.free",
	"ffi.callback.set", "ffi.cdef", "ffi.new", "ffi.cast", "ffi.typeof",
	"ffi.typeinfo", "ffi.istype", "ffi.sizeof", "ffi.alignof",
	"ffi.offsetof", "ffi.errno", "ffi.string", "ffi.copy", "ffi.fill",
	"ffi.abi", "ffi.metatype", "ffi.gc", "ffi.load", "buffer.method.free",
	"buffer.method.reset", "buffer.method.skip", "buffer.method.set",
	"buffer.method.put", "buffer.method.putf", "buffer.method.get",
	"buffer.method.putcdata", "buffer.method.reserve",
	"buffer.method.commit", "buffer.method.ref", "buffer.method.encode",
	"buffer.method.decode", "buffer.method.__gc",
	"buffer.method.__tostring", "buffer.method.__len", "buffer.new",
	"buffer.encode", "buffer.decode", "misc.getmetrics",
	"misc.sysprof.start", "misc.sysprof.stop", "misc.sysprof.report",
	"misc.memprof.start", "misc.memprof.stop",
};

_Static_assert(SEAM_ARRAY_SIZE(order) <= SEAM_FAST_FUNCTIONS_MAX,
	       "one flag for each function");

enum { FIRST_ID = 2 };		/* 0 is a Lua function, 1 any C function */

/* Functions of every build: without them the symbols are only some. */
static const char *const always[] = {
	"assert", "select", "tostring", "print", "string.byte",
	"string.format", "table.concat", "os.clock",
};

bool seam_fast_functions_is(const char *name, const char *symbol)
{
	if (strncmp(symbol, "lj_cf_", 6) != 0)
		return false;
	for (symbol += 6; *name && (*name == *symbol ||
				    (*name == '.' && *symbol == '_')); name++)
		symbol++;
	return !*name && !*symbol;
}

/* The place of the function in the order; SEAM_ARRAY_SIZE(order): none. */
static size_t find(const char *symbol)
{
	size_t i = 0;

	while (i < SEAM_ARRAY_SIZE(order) &&
	       !seam_fast_functions_is(order[i], symbol))
		i++;
	return i;
}

/* The functions of package, although lj_cf_*, are no fast functions. */
void seam_fast_functions_note(struct seam_fast_functions *f,
			      const char *symbol, size_t size)
{
	char name[64];
	size_t i;

	if (size < 6 || size >= sizeof(name) ||
	    (memcmp(symbol, "lj_ff_", 6) != 0 &&
	     memcmp(symbol, "lj_cf_", 6) != 0))
		return;
	snprintf(name, sizeof(name), "lj_cf_%.*s", (int)size - 6, symbol + 6);
	if (strncmp(name, "lj_cf_package_", 14) == 0)
		return;
	i = find(name);
	f->is_made = false;
	if (i < SEAM_ARRAY_SIZE(order)) {
		f->has[i] = true;
		f->is_c[i] |= symbol[3] == 'c';
	} else {
		f->has_unknown = true;
	}
}

static bool is_whole(const struct seam_fast_functions *f)
{
	for (size_t a = 0, i = 0; a < SEAM_ARRAY_SIZE(always); a++) {
		while (strcmp(order[i], always[a]) != 0)
			i++;
		if (!f->has[i])
			return false;
	}
	return !f->has_unknown;
}

static void make(struct seam_fast_functions *f)
{
	f->n_ids = 0;
	f->is_made = true;
	if (!is_whole(f))
		return;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(order); i++)
		if (f->has[i])
			f->by_id[f->n_ids++] = (uint16_t)i;
}

const char *seam_fast_functions_name(struct seam_fast_functions *f,
				     uint64_t ffid, bool *in_c)
{
	size_t i;

	*in_c = false;
	if (!f->is_made)
		make(f);
	if (ffid < FIRST_ID || ffid - FIRST_ID >= f->n_ids)
		return NULL;
	i = f->by_id[ffid - FIRST_ID];
	*in_c = f->is_c[i];
	return order[i];
}
