/* SPDX-License-Identifier: MIT */
/* sysprof_stacks.c - addresses to frames, two stacks to one */
#include "model/sysprof/sysprof_stacks.h"

#include <errno.h>
#include <inttypes.h>

/* -- fast functions ----------------------------------------------------- */

/*
 * Names of a VM's fast functions, from its symbols
 *
 * A stream has the number of a fast function (ffid), but not the build of the
 * VM on which the number depends: on its libraries, of which OpenResty and
 * Tarantool have more, and on their version.  A fast function is the symbol
 * lj_ff_NAME or lj_cf_NAME.  Numbers are given in the order in which the
 * libraries define their functions, and that order is the same in all known
 * builds; so the symbols that are there, in that order, are the numbers.  A
 * stripped VM has no such symbols, an unknown function would shift all others:
 * then no ffid has a name.
 *
 * Source: LuaJIT, host/buildvm_lib.c, and jit/vmdef.lua as it made them: 2.1 of
 * 2022-03 and v2.1 head, OpenResty's luajit2, Tarantool's fork.
 */

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

/* Functions of every build: if one is missing, symbols are incomplete. */
static const char *const always[] = {
	"assert", "select", "tostring", "print", "string.byte",
	"string.format", "table.concat", "os.clock",
};

/*
 * Whether C function @symbol is that of the fast function called @name:
 * "lj_cf_string_gsub" of "string.gsub".
 */
static bool is_c_of_fast(const char *name, const char *symbol)
{
	if (strncmp(symbol, "lj_cf_", 6) != 0)
		return false;
	for (symbol += 6; *name && (*name == *symbol ||
				    (*name == '.' && *symbol == '_')); name++)
		symbol++;
	return !*name && !*symbol;
}

/*
 * Note a symbol of the stream, of any kind.  The functions of package have
 * symbols lj_cf_*, but are no fast functions.
 */
static void note_fast(struct seam_fast_functions *f,
		      const char *symbol, size_t size)
{
	char name[64];
	size_t i = 0;

	if (size < 6 || size >= sizeof(name) ||
	    (memcmp(symbol, "lj_ff_", 6) != 0 &&
	     memcmp(symbol, "lj_cf_", 6) != 0))
		return;
	snprintf(name, sizeof(name), "lj_cf_%.*s", (int)size - 6, symbol + 6);
	if (strncmp(name, "lj_cf_package_", 14) == 0)
		return;
	while (i < SEAM_ARRAY_SIZE(order) &&
	       !is_c_of_fast(order[i], name))
		i++;
	f->is_made = false;
	if (i < SEAM_ARRAY_SIZE(order)) {
		f->has[i] = true;
		f->is_c[i] |= symbol[3] == 'c';
	} else {
		f->has_unknown = true;
	}
}

static void number_functions(struct seam_fast_functions *f)
{
	bool is_whole = !f->has_unknown;

	for (size_t a = 0, i = 0; a < SEAM_ARRAY_SIZE(always); a++) {
		while (strcmp(order[i], always[a]) != 0)
			i++;
		is_whole &= f->has[i];
	}
	f->n_ids = 0;
	f->is_made = true;
	for (size_t i = 0; is_whole && i < SEAM_ARRAY_SIZE(order); i++)
		if (f->has[i])
			f->by_id[f->n_ids++] = (uint16_t)i;
}

/*
 * "string.gsub", or NULL: not known.  *@in_c: it is a C function, of which the
 * host's stack has a frame as well.
 */
static const char *name_of_fast(struct seam_fast_functions *f,
				uint64_t ffid, bool *in_c)
{
	size_t i;

	*in_c = false;
	if (!f->is_made)
		number_functions(f);
	if (ffid < FIRST_ID || ffid - FIRST_ID >= f->n_ids)
		return NULL;
	i = f->by_id[ffid - FIRST_ID];
	*in_c = f->is_c[i];
	return order[i];
}

/* -- C functions -------------------------------------------------------- */

/*
 * A stream may add functions between any two samples.  So functions are kept as
 * sorted runs; the newest run is merged with the run before it while that run is
 * no larger.
 * Adding a function costs O(log n) and a look-up, a look-up O(log^2 n).
 */

/* The function that begins last at or before @addr, or NULL. */
static const struct seam_c_function *
find_c_function(const struct seam_c_functions *f, uint64_t addr)
{
	const struct seam_c_function *items = f->items.items, *best = NULL;

	for (size_t run = 0; run < f->runs.n; run++) {
		size_t begin = f->runs.items[run];
		size_t end = run + 1 < f->runs.n ? f->runs.items[run + 1] :
						   f->items.n;
		size_t n = SEAM_ARRAY_SEARCH(i, end - begin,
					     items[begin + i].addr <= addr);

		/* of equal addresses take the later run: it was added last */
		if (n && (!best || items[begin + n - 1].addr >= best->addr))
			best = &items[begin + n - 1];
	}
	return best;
}

/* Merge the last two runs; a later function replaces one before it. */
static int merge(struct seam_c_functions *f)
{
	size_t begin = f->runs.items[f->runs.n - 2];
	size_t a = begin, b = f->runs.items[f->runs.n - 1], middle = b;
	size_t end = f->items.n;
	const struct seam_c_function *items = f->items.items;

	f->merged.n = 0;
	if (!SEAM_ARRAY_RESERVE(&f->merged, end - begin))
		return -ENOMEM;
	while (a < middle || b < end) {
		bool is_later = a == middle ||
				(b < end && items[b].addr <= items[a].addr);

		if (is_later && a < middle && items[a].addr == items[b].addr)
			a++;
		f->merged.items[f->merged.n++] =
			is_later ? items[b++] : items[a++];
	}
	memcpy(f->items.items + begin, f->merged.items,
	       f->merged.n * sizeof(*items));
	f->items.n = begin + f->merged.n;
	f->runs.n--;
	return 0;
}

/*
 * The last function added at an address counts.  1: the function is new, or has
 * another name; 0: it was there; or -ENOMEM.
 */
static int add_c_function(struct seam_c_functions *f, uint64_t addr,
			  uint32_t name)
{
	const struct seam_c_function *known = find_c_function(f, addr);

	if (known && known->addr == addr && known->name == name)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&f->runs, 1) ||
	    !SEAM_ARRAY_ADD(&f->items, (struct seam_c_function) { addr, name }))
		return -ENOMEM;
	f->runs.items[f->runs.n++] = f->items.n - 1;
	while (f->runs.n > 1) {
		size_t last = f->runs.items[f->runs.n - 1];
		size_t before = last - f->runs.items[f->runs.n - 2];

		if (before > f->items.n - last)
			break;
		if (merge(f))
			return -ENOMEM;
	}
	return 1;
}

/*
 * No function is larger: the interpreter loops of CPython and Lua, the largest
 * that are common, have 50 KiB.
 */
enum { MAX_FUNCTION_BYTES = 64 << 10 };

void seam_sysprof_names_fini(struct seam_sysprof_names *n)
{
	seam_guest_names_fini(&n->guest);
	free(n->c_functions.items.items);
	free(n->c_functions.runs.items);
	free(n->c_functions.merged.items);
	free(n->protos.items);
	seam_pair_map_fini(&n->by_addr);
	seam_pair_map_fini(&n->traces);
	free(n->meanings);
}

/* -- symbols ------------------------------------------------------------ */

/* Symbols have changed: meanings of before are not used any more. */
static void change(struct seam_sysprof_names *n)
{
	n->epoch += n->is_used;
	n->is_used = false;
}

static int add_lfunc(struct seam_sysprof_names *n,
		     const struct seam_sysprof_lfunc *lfunc)
{
	struct seam_sysprof_proto proto = {
		.chunk = seam_guest_chunk(&n->guest, lfunc->chunk),
		.line = lfunc->line,
	};
	const uint32_t *known = seam_pair_map_find(&n->by_addr, lfunc->addr, 0);

	if (proto.chunk == SEAM_NONE)
		return -ENOMEM;
	if (known) {
		struct seam_sysprof_proto *old = &n->protos.items[*known];

		if (old->chunk != proto.chunk || old->line != proto.line)
			change(n);
		*old = proto;
		return 0;
	}
	change(n);
	return SEAM_ARRAY_ADD(&n->protos, proto) ?
	       seam_pair_map_put(&n->by_addr, lfunc->addr, 0,
				 (uint32_t)(n->protos.n - 1)) : -ENOMEM;
}

static int add_cfunc(struct seam_sysprof_names *n,
		     const struct seam_sysprof_cfunc *cfunc)
{
	const char *text = (const char *)cfunc->name.data;
	uint32_t name = seam_strings_add(&n->profile->strings, text,
					 cfunc->name.size);
	int r = name == SEAM_NONE ? -ENOMEM :
		add_c_function(&n->c_functions, cfunc->addr, name);

	if (r <= 0)
		return r;
	note_fast(&n->fast, text, cfunc->name.size);
	change(n);
	return 0;
}

int seam_sysprof_names_add(struct seam_sysprof_names *n,
			   const struct seam_sysprof_item *item)
{
	const struct seam_sysprof_trace *trace = &item->trace;
	const uint32_t *known;
	uint32_t line;

	n->guest.profile = n->profile;
	switch (item->kind) {
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		return add_lfunc(n, &item->lfunc);
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		return add_cfunc(n, &item->cfunc);
	case SEAM_SYSPROF_SYMBOL_TRACE:
		known = seam_pair_map_find(&n->traces, trace->traceno,
					   trace->addr);
		line = trace->line < UINT32_MAX ? (uint32_t)trace->line :
		       UINT32_MAX;
		if (!known || *known != line)
			change(n);
		return seam_pair_map_put(&n->traces, trace->traceno,
					 trace->addr, line);
	default:
		return 0;
	}
}

/* -- frames ------------------------------------------------------------- */

static const char *text_of(const struct seam_sysprof_names *n, uint32_t string)
{
	return seam_profile_text(n->profile, string);
}

/* The frame at @addr of @function. */
static uint32_t frame_of(struct seam_sysprof_names *n, uint32_t function,
			 uint64_t addr)
{
	struct seam_frame frame = {
		.function = function, .addr = addr, .code = SEAM_NONE,
	};

	if (function == SEAM_NONE)
		return SEAM_NONE;
	frame.module = n->profile->functions.items[function].module;
	return seam_profile_frame(n->profile, &frame);
}

static uint32_t native_frame(struct seam_sysprof_names *n, const char *name,
			     uint64_t addr, bool is_named)
{
	uint32_t string = seam_strings_put(&n->profile->strings, name);

	return string == SEAM_NONE ? SEAM_NONE :
	       frame_of(n, seam_profile_function(n->profile,
			&(struct seam_function) {
				.name = string, .layer = SEAM_LAYER_NATIVE,
				.is_named = is_named,
			}), addr);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Functions of the VM's assembly code that others call, and that return. */
static bool is_helper(const char *name)
{
	static const char *const helpers[] = {
		"ffi_call", "floor", "ceil", "trunc", "pow", "exp2", "log2",
		"mod", "foldarith", "foldfpm", "cpuid", "next", "errno",
		"cachesync",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(helpers); i++)
		if (begins(name, helpers[i]) && strcmp(name, "ffi_callback"))
			return true;
	return false;
}

static enum seam_sysprof_role role_of(const struct seam_sysprof_names *n,
				      const char *name)
{
	if (begins(name, "lua_call") || begins(name, "lua_pcall") ||
	    (!n->as_parser && begins(name, "lua_resume")))
		return SEAM_SYSPROF_ROLE_CALL;
	if (begins(name, "lua_cpcall"))
		return SEAM_SYSPROF_ROLE_CPCALL;
	if (begins(name, "lj_ff_coroutine_resume") ||
	    begins(name, "lj_ff_coroutine_wrap_aux"))
		return SEAM_SYSPROF_ROLE_SWITCH;
	if (begins(name, "lj_BC_") || begins(name, "lj_ff_") ||
	    begins(name, "lj_cont_") ||
	    (begins(name, "lj_vm_") && !is_helper(name + 6)))
		return SEAM_SYSPROF_ROLE_VM;
	return begins(name, "lj_") ? SEAM_SYSPROF_ROLE_INNER :
	       SEAM_SYSPROF_ROLE_OTHER;
}

/*
 * A return address is looked up as the byte before it, which is in the call;
 * the parser of LuaJIT looks up the return address itself.
 */
static struct seam_sysprof_place name_host(struct seam_sysprof_names *n,
					   uint64_t addr, bool is_leaf)
{
	const struct seam_c_function *f = find_c_function(
			&n->c_functions, addr - (!is_leaf && !n->as_parser));
	struct seam_sysprof_place place = { 0 };
	char text[512];

	if (!f) {
		snprintf(text, sizeof(text), "[unknown+0x%" PRIx64 "]", addr);
		place.frame = native_frame(n, text, addr, false);
		return place;
	}
	if (!n->as_parser && addr - f->addr > MAX_FUNCTION_BYTES) {
		size_t n_before = n->profile->functions.n;

		snprintf(text, sizeof(text), "[%.400s+0x%" PRIx64 "]",
			 text_of(n, f->name), addr - f->addr);
		place.frame = native_frame(n, text, addr, false);
		/* an address is named again after each change of symbols */
		n->n_far += n->profile->functions.n > n_before;
		return place;
	}
	place.function = f->addr;
	place.symbol = f->name;
	place.role = role_of(n, text_of(n, f->name));
	place.frame = native_frame(n, text_of(n, f->name), addr, true);
	return place;
}

static const struct seam_sysprof_proto *
find_proto(struct seam_sysprof_names *n, uint64_t addr)
{
	const uint32_t *id = seam_pair_map_find(&n->by_addr, addr, 0);

	return id ? &n->protos.items[*id] : NULL;
}

static uint32_t name_proto(struct seam_sysprof_names *n, uint64_t addr,
			   uint64_t line)
{
	const struct seam_sysprof_proto *proto = find_proto(n, addr);
	char text[64];

	if (proto)
		return frame_of(n, seam_guest_function(&n->guest, proto->chunk,
						       proto->line, NULL),
				addr);
	snprintf(text, sizeof(text), "[prototype 0x%" PRIx64 "]:%" PRIu64,
		 addr, line);
	return frame_of(n, seam_guest_builtin(&n->guest, text, false), addr);
}

static struct seam_sysprof_place name_fast(struct seam_sysprof_names *n,
					   uint64_t ffid)
{
	bool in_c;
	const char *name = name_of_fast(&n->fast, ffid, &in_c);
	char text[32];

	snprintf(text, sizeof(text), "ffid %" PRIu64, ffid);
	return (struct seam_sysprof_place) {
		.frame = frame_of(n, seam_guest_builtin(&n->guest, name ? name :
							text, name), ffid),
		.symbol = in_c ? seam_strings_put(&n->profile->strings, name) :
			  0,
	};
}

/* @line: of the sample, where no symbol has the trace. */
static uint32_t name_trace(struct seam_sysprof_names *n, uint64_t traceno,
			   uint64_t addr, uint64_t line)
{
	const struct seam_sysprof_proto *proto = find_proto(n, addr);
	const uint32_t *known = seam_pair_map_find(&n->traces, traceno, addr);

	return frame_of(n, seam_guest_trace(&n->guest, traceno,
			proto ? proto->chunk : SEAM_NONE,
			known ? *known : line), traceno);
}

/* -- meanings ----------------------------------------------------------- */

enum { N_MEANINGS = 1 << 13 };	/* a power of two */

/* Kinds of numbers, beside those of enum seam_sysprof_frame_kind. */
enum { OF_HOST = SEAM_SYSPROF_FFUNC + 1, OF_LEAF, OF_TRACE };

static struct seam_sysprof_place
make_place(struct seam_sysprof_names *n, unsigned int kind, uint64_t value,
	   uint64_t more, uint64_t line)
{
	struct seam_sysprof_place place = { 0 };

	switch (kind) {
	case SEAM_SYSPROF_LFUNC:
		place.frame = name_proto(n, value, more);
		return place;
	case SEAM_SYSPROF_FFUNC:
		return name_fast(n, value);
	case OF_TRACE:
		place.frame = name_trace(n, more, value, line);
		return place;
	default:
		return name_host(n, value, kind != OF_HOST);
	}
}

/*
 * The place of @value, with @more: the line of a Lua function, the number of a
 * trace.  Memory that runs out makes the frame SEAM_NONE.
 */
static inline struct seam_sysprof_place
look_up(struct seam_sysprof_names *n, unsigned int kind, uint64_t value,
	uint64_t more, uint64_t line)
{
	uint64_t hash = (value ^ more << 7 ^ (uint64_t)kind << 60) *
			UINT64_C(0x9e3779b97f4a7c15);
	struct seam_sysprof_meaning *m;

	if (!n->meanings)
		n->meanings = calloc(N_MEANINGS, sizeof(*n->meanings));
	if (!n->meanings)
		return (struct seam_sysprof_place) { .frame = SEAM_NONE };
	m = &n->meanings[(hash >> 40) % N_MEANINGS];
	/* a zeroed entry has kind 0, which no number has */
	if (m->value != value || m->more != more || m->kind != kind ||
	    m->epoch != n->epoch)
		*m = (struct seam_sysprof_meaning) {
			.value = value, .more = more, .kind = kind,
			.epoch = n->epoch,
			.place = make_place(n, kind, value, more, line) };
	n->is_used = true;
	return m->place;
}

struct seam_sysprof_place
seam_sysprof_names_host(struct seam_sysprof_names *n, uint64_t addr,
			bool is_leaf)
{
	return look_up(n, is_leaf ? OF_LEAF : OF_HOST, addr, 0, 0);
}

/* -- joined stacks ------------------------------------------------------ */

/*
 * One stack of the host's and the Lua frames of a sample
 *
 * A sysprof sample has two stacks, but not where these join.  The host's stack
 * has a frame of the VM for each time that C called into the VM, and after that
 * frame the C function that the VM called in turn:
 *
 *	host  main lua_pcall VM l_apply lua_call VM c_leaf
 *	Lua        chunk f      l_apply      g      c_leaf
 *
 * So C functions are the joints: l_apply is looked up in the host's stack, by
 * its address, where its caller is the VM; a fast function in C by its symbol.
 * The Lua frames between two joints are put before the VM's frames between
 * these joints.  The walk begins at the leaf, because a Lua stack is that of a
 * single coroutine: at the root the Lua stack has fewer frames than the host's.
 * A C function is one frame in the result, the VM's frames stay.  If the VM has
 * no symbols, the caller of a joint is the VM; if there is no joint either, Lua
 * frames are put below the innermost lua_call or lua_pcall; and if the host's
 * stack has no such call, at the leaf, but above other code of the VM there.
 *
 * LuaJIT's own parser, and as_parser, join from the root: lua_call and
 * lua_pcall are followed by Lua frames up to a C function.  Frames of inner
 * calls are lost where the compiler made the call of lua_call a jump.  The
 * parser of version 1 puts all Lua frames at the leaf.
 */

void seam_joined_stack_fini(struct seam_joined_stack *stack)
{
	free(stack->frames.items);
	free(stack->host.items);
	free(stack->lua.items);
}

/* -- frames of both ----------------------------------------------------- */

static int name_frames(struct seam_joined_stack *stack,
		       struct seam_sysprof_names *names,
		       const struct seam_sysprof_item *s)
{
	struct seam_sysprof_place host, lua;

	stack->frames.n = stack->host.n = stack->lua.n = 0;
	if (!SEAM_ARRAY_RESERVE(&stack->frames, s->n_host + s->n_lua + 2) ||
	    !SEAM_ARRAY_RESERVE(&stack->host, s->n_host + 1) ||
	    !SEAM_ARRAY_RESERVE(&stack->lua, s->n_lua + 1))
		return -ENOMEM;
	for (size_t i = 0; i < s->n_host; i++) {
		host = seam_sysprof_names_host(names, s->host[i], i == 0);
		if (host.frame == SEAM_NONE)
			return -ENOMEM;
		stack->host.items[stack->host.n++] = host;
	}
	for (size_t i = 0; i < s->n_lua; i++) {
		lua = look_up(names, s->lua[i].kind, s->lua[i].value,
			      s->lua[i].line, 0);
		if (lua.frame == SEAM_NONE)
			return -ENOMEM;
		stack->lua.items[stack->lua.n++] = lua;
	}
	return 0;
}

static void put(struct seam_joined_stack *stack,
		const struct seam_sysprof_place *places, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		stack->frames.items[stack->frames.n++] = places[i].frame;
}

/* -- by joints ---------------------------------------------------------- */

static bool is_vm(const struct seam_sysprof_place *place)
{
	return place->role == SEAM_SYSPROF_ROLE_VM ||
	       place->role == SEAM_SYSPROF_ROLE_SWITCH;
}

struct joining {
	struct seam_joined_stack *stack;
	const struct seam_sysprof_names *names;
	const struct seam_sysprof_item *sample;
	bool has_vm;		/* frames of the VM are known in this stack */
	size_t n_left;		/* comparisons that may still be made */
};

/* Whether the host's frame @h is that of Lua frame @l, a joint. */
static bool is_same(const struct joining *j, size_t l, size_t h)
{
	const struct seam_sysprof_place *lua = &j->stack->lua.items[l];
	const struct seam_sysprof_place *host = &j->stack->host.items[h];

	if (j->sample->lua[l].kind == SEAM_SYSPROF_CFUNC)
		return host->symbol && lua->function == host->function;
	return is_c_of_fast(
			seam_profile_text(j->names->profile, lua->symbol),
			seam_profile_text(j->names->profile, host->symbol));
}

/* Whether the VM called frame @h, as far as its symbols show that. */
static bool is_called_by_vm(const struct joining *j, size_t h)
{
	const struct seam_sysprof_place *host = j->stack->host.items;
	size_t n = j->stack->host.n;

	if (j->has_vm)
		return h + 1 < n && is_vm(&host[h + 1]);
	/* of a C function that calls itself, the outermost */
	return h + 1 == n || host[h + 1].function != host[h].function;
}

/*
 * Move *@l outward to the first joint with a frame in the host's stack at @h or
 * after.  Returns the index of that frame; host.n: there is no such joint.
 */
static size_t find_joint(struct joining *j, size_t *l, size_t h)
{
	size_t n = j->stack->host.n;

	for (; *l < j->stack->lua.n; ++*l) {
		if (j->sample->lua[*l].kind == SEAM_SYSPROF_LFUNC ||
		    !j->stack->lua.items[*l].symbol)
			continue;
		for (size_t at = h; at < n && j->n_left; at++, j->n_left--)
			if (is_same(j, *l, at) && is_called_by_vm(j, at))
				return at;
	}
	return n;
}

/*
 * Where the Lua frames of the host's frames [@from, @to) go: returns the index
 * of the host's frame that follows these Lua frames, seen from the leaf.
 */
static size_t find_gap(const struct joining *j, size_t from, size_t to)
{
	const struct seam_sysprof_place *host = j->stack->host.items;
	size_t i = from;

	while (i < to && !is_vm(&host[i]))
		i++;
	if (i < to) {
		/* resume and wrap are frames of the coroutine that resumes:
		 * stop before them, except at the leaf */
		do
			i++;
		while (i < to && host[i].role == SEAM_SYSPROF_ROLE_VM);
		return i;
	}
	for (i = from; i < to; i++)
		if (host[i].role == SEAM_SYSPROF_ROLE_CALL)
			return i;
	/* frame @from - 1 is a joint, or code of the VM that the VM called */
	if (from > 0)
		return from < to ? from + 1 : from;
	while (from < to && host[from].role == SEAM_SYSPROF_ROLE_INNER)
		from++;
	return from;
}

static void join(struct joining *j)
{
	struct seam_joined_stack *stack = j->stack;
	const struct seam_sysprof_place *host = stack->host.items;
	size_t h = 0, l = 0, joint = 0;

	for (;;) {
		size_t at = find_joint(j, &joint, h);
		size_t gap = find_gap(j, h, at);

		put(stack, host, h, gap);
		put(stack, stack->lua.items, l, joint);
		put(stack, host, gap, at);
		if (at == stack->host.n)
			return;
		put(stack, host, at, at + 1);
		h = at + 1;
		/* a fast function is shown beside its C function */
		l = joint++;
		l += j->sample->lua[l].kind == SEAM_SYSPROF_CFUNC;
	}
}

/* -- as LuaJIT's parser ------------------------------------------------- */

/*
 * Limit of the frames that the parser's repetitions add to a stack: a real
 * program has few nested calls into the VM, or few frames.
 */
enum { MAX_REPEATED = 65536 };

/* Frames are put in from the root, and reversed in the end. */
struct parsing {
	struct seam_joined_stack *stack;
	const struct seam_sysprof_item *sample;
	size_t reached;		/* C functions from here outward are done */
	size_t first;		/* Lua frames inside of this one are dropped */
	size_t max;		/* frames: repetitions are bounded */
	bool is_called;		/* the host's stack has a call into the VM */
};

static bool is_c(const struct parsing *p, size_t l)
{
	return p->sample->lua[l].kind == SEAM_SYSPROF_CFUNC;
}

/*
 * Lua frames up to the next C function, which the host's stack shows itself.
 * The parser drops the frame at which it stopped, the C function or the
 * innermost frame, and keeps the frames before, which the next call repeats.
 */
static int put_lua(struct parsing *p)
{
	struct seam_joined_stack *stack = p->stack;
	size_t n_lua = stack->lua.n;

	if (stack->frames.n + n_lua + stack->host.n > p->max)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&stack->frames, n_lua + stack->host.n))
		return -ENOMEM;
	for (size_t l = n_lua; l-- > p->first;) {
		if (!is_c(p, l)) {
			put(stack, stack->lua.items, l, l + 1);
		} else if (l < p->reached) {
			p->reached = l;
			return 0;
		}
	}
	p->reached = 0;
	p->first += p->first < n_lua;
	return 0;
}

static int put_host(struct parsing *p, size_t h)
{
	enum seam_sysprof_role role = p->stack->host.items[h].role;
	size_t outermost = p->stack->lua.n - 1;

	if (role == SEAM_SYSPROF_ROLE_CPCALL && p->stack->lua.n &&
	    is_c(p, outermost) && p->reached > outermost)
		p->reached = outermost;
	put(p->stack, p->stack->host.items, h, h + 1);
	if (role != SEAM_SYSPROF_ROLE_CALL)
		return 0;
	p->is_called = true;
	return put_lua(p);
}

static int join_as_parser(struct seam_joined_stack *stack,
			  const struct seam_sysprof_item *sample,
			  unsigned int version)
{
	struct parsing p = {
		.stack = stack, .sample = sample, .reached = stack->lua.n,
		.max = MAX_REPEATED + sample->n_lua + sample->n_host,
	};
	int r = 0;

	for (size_t h = stack->host.n; h-- > 0 && !r;) {
		if (version > 1)
			r = put_host(&p, h);
		else
			put(stack, stack->host.items, h, h + 1);
	}
	if (p.is_called)
		stack->n_left_out += p.reached;
	else
		for (size_t l = stack->lua.n; l-- > 0;)
			put(stack, stack->lua.items, l, l + 1);
	for (size_t i = 0, k = stack->frames.n; i + 1 < k; i++) {
		uint32_t frame = stack->frames.items[i];

		stack->frames.items[i] = stack->frames.items[--k];
		stack->frames.items[k] = frame;
	}
	return r;
}

/* -- any sample --------------------------------------------------------- */

static int make_trace(struct seam_joined_stack *stack,
		      struct seam_sysprof_names *names,
		      const struct seam_sysprof_trace *trace)
{
	struct seam_sysprof_place places[2];

	places[0] = look_up(names, OF_TRACE, trace->addr, trace->traceno,
			    trace->line);
	places[1] = look_up(names, SEAM_SYSPROF_LFUNC, trace->addr,
			    trace->line, 0);
	stack->frames.n = 0;
	if (places[0].frame == SEAM_NONE || places[1].frame == SEAM_NONE ||
	    !SEAM_ARRAY_RESERVE(&stack->frames, 2))
		return -ENOMEM;
	put(stack, places, 0, 2);
	return 0;
}

int seam_joined_stack_make(struct seam_joined_stack *stack,
			   struct seam_sysprof_names *names,
			   const struct seam_sysprof_item *sample,
			   unsigned int version)
{
	struct joining j = {
		.stack = stack, .names = names, .sample = sample,
		/* far above any real stack: bounds a crafted stream */
		.n_left = 65536 + 64 * (sample->n_lua + sample->n_host),
	};

	if (sample->vmstate == SEAM_VMSTATE_TRACE)
		return make_trace(stack, names, &sample->trace);
	if (name_frames(stack, names, sample))
		return -ENOMEM;
	if (names->as_parser)
		return join_as_parser(stack, sample, version);
	for (size_t h = 0; h < stack->host.n && !j.has_vm; h++)
		j.has_vm = is_vm(&stack->host.items[h]);
	join(&j);
	return 0;
}
