/* SPDX-License-Identifier: MIT */
/* sysprof_names.c - addresses to frames of the profile; see sysprof_names.h */
#include "model/sysprof/sysprof_names.h"

#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"

/* -- fast functions ----------------------------------------------------- */

/*
 * Names of a VM's fast functions, from its symbols
 *
 * A sysprof stream has the number of a fast function (ffid), which depends on
 * the build of the VM: on the libraries in it, of which OpenResty and Tarantool
 * have more, and on their version.  The stream does not name the build, but it
 * has the VM's symbols: a fast function is lj_ff_NAME or lj_cf_NAME.  Numbers
 * are given in the order in which the libraries define their functions, and
 * that order is the same in all known builds; so the symbols that are there, in
 * that order, are the numbers.  A stripped VM has none of them, and an unknown
 * function would shift all others: then no ffid has a name.
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
static size_t find_symbol(const char *symbol)
{
	size_t i = 0;

	while (i < SEAM_ARRAY_SIZE(order) &&
	       !seam_fast_functions_is(order[i], symbol))
		i++;
	return i;
}

/* The functions of package, although lj_cf_*, are no fast functions. */
/* Take note of a symbol of the stream, of any kind. */
static void note_fast(struct seam_fast_functions *f,
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
	i = find_symbol(name);
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

/*
 * "string.gsub", or NULL: not known.  *@in_c: it is a C function, which the
 * host's stack has as well.
 */
static const char *name_of_fast(struct seam_fast_functions *f,
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

/* -- C functions -------------------------------------------------------- */

/*
 * The C functions of a sysprof stream, by address
 *
 * A stream has the addresses of functions, but neither their sizes nor the
 * files that they are in, and it may add functions between any two samples.  So
 * they are sorted runs, of which a new one is merged with those before it while
 * they are no larger.  Adding costs O(log n) a function and a look-up; looking
 * one up costs O(log^2 n).
 */

static size_t run_end(const struct seam_c_functions *f, size_t run)
{
	return run + 1 < f->runs.n ? f->runs.items[run + 1] : f->items.n;
}

const struct seam_c_function *
seam_c_functions_find(const struct seam_c_functions *f, uint64_t addr)
{
	const struct seam_c_function *items = f->items.items, *best = NULL;

	for (size_t run = 0; run < f->runs.n; run++) {
		size_t begin = f->runs.items[run];
		size_t n = SEAM_ARRAY_SEARCH(i, run_end(f, run) - begin,
					     items[begin + i].addr <= addr);

		/* of equal ones that of the later run, which was added later */
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

int seam_c_functions_add(struct seam_c_functions *f, uint64_t addr,
			 uint32_t name)
{
	const struct seam_c_function *known = seam_c_functions_find(f, addr);

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

void seam_c_functions_fini(struct seam_c_functions *f)
{
	free(f->items.items);
	free(f->runs.items);
	free(f->merged.items);
}

/*
 * No function is larger: the interpreter loops of CPython and Lua, the largest
 * that are common, have 50 KiB.
 */
enum { MAX_FUNCTION_BYTES = 64 << 10 };

void seam_sysprof_names_fini(struct seam_sysprof_names *n)
{
	seam_guest_names_fini(&n->guest);
	seam_c_functions_fini(&n->c_functions);
	free(n->protos.items);
	seam_pair_map_fini(&n->by_addr);
	seam_pair_map_fini(&n->traces);
	free(n->meanings.items);
	seam_index_fini(&n->index);
}

/* -- symbols ------------------------------------------------------------ */

/* The next look-ups find what is true now. */
static void change(struct seam_sysprof_names *n)
{
	if (n->meanings.n)
		n->epoch++;
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
		seam_c_functions_add(&n->c_functions, cfunc->addr, name);

	if (r <= 0)
		return r;
	note_fast(&n->fast, text, cfunc->name.size);
	change(n);
	return 0;
}

static int add_trace(struct seam_sysprof_names *n,
		     const struct seam_sysprof_trace *trace)
{
	const uint32_t *known = seam_pair_map_find(&n->traces, trace->traceno,
						   trace->addr);
	uint32_t line = trace->line < UINT32_MAX ? (uint32_t)trace->line :
			UINT32_MAX;

	if (!known || *known != line)
		change(n);
	return seam_pair_map_put(&n->traces, trace->traceno, trace->addr, line);
}

int seam_sysprof_names_add(struct seam_sysprof_names *n,
			   const struct seam_sysprof_item *item)
{
	n->guest.profile = n->profile;
	switch (item->kind) {
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		return add_lfunc(n, &item->lfunc);
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		return add_cfunc(n, &item->cfunc);
	case SEAM_SYSPROF_SYMBOL_TRACE:
		return add_trace(n, &item->trace);
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

static struct seam_sysprof_place name_unknown(struct seam_sysprof_names *n,
					      uint64_t addr)
{
	char text[40];

	snprintf(text, sizeof(text), "[unknown+0x%" PRIx64 "]", addr);
	return (struct seam_sysprof_place) {
		.frame = native_frame(n, text, addr, false),
	};
}

/*
 * A return address is looked up one byte before it, which is in the call; the
 * parser of LuaJIT looks it up as it is.
 */
static struct seam_sysprof_place name_host(struct seam_sysprof_names *n,
					   uint64_t addr, bool is_leaf)
{
	const struct seam_c_function *f = seam_c_functions_find(
			&n->c_functions, addr - (!is_leaf && !n->as_parser));
	struct seam_sysprof_place place = { 0 };
	char text[512];

	if (!f)
		return name_unknown(n, addr);
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

static struct seam_sysprof_place
name_lua(struct seam_sysprof_names *n, const struct seam_sysprof_frame *frame)
{
	if (frame->kind == SEAM_SYSPROF_LFUNC)
		return (struct seam_sysprof_place) {
			.frame = name_proto(n, frame->value, frame->line),
		};
	return frame->kind == SEAM_SYSPROF_FFUNC ? name_fast(n, frame->value) :
	       name_host(n, frame->value, true);
}

static struct seam_sysprof_place
name_trace(struct seam_sysprof_names *n, const struct seam_sysprof_trace *trace)
{
	const struct seam_sysprof_proto *proto = find_proto(n, trace->addr);
	const uint32_t *line = seam_pair_map_find(&n->traces, trace->traceno,
						  trace->addr);

	return (struct seam_sysprof_place) {
		.frame = frame_of(n, seam_guest_trace(&n->guest, trace->traceno,
			proto ? proto->chunk : SEAM_NONE,
			line ? *line : trace->line), trace->traceno),
	};
}

/* -- meanings ----------------------------------------------------------- */

/* The meaning of (@a, @b), made if it is new; it is outdated then. */
static struct seam_sysprof_meaning *find(struct seam_sysprof_names *n,
					 uint64_t a, uint64_t b)
{
	const struct seam_sysprof_meaning *items = n->meanings.items;
	uint32_t i = SEAM_INDEX_INTERN(&n->index, seam_hash_add(a, b),
		&n->meanings, k, items[k].key[0] == a && items[k].key[1] == b,
		(struct seam_sysprof_meaning) {
			.key = { a, b }, .epoch = n->epoch - 1 });

	return i == SEAM_NONE ? NULL : &n->meanings.items[i];
}

/*
 * Kinds of keys: in the upper 4 bits, beside a line or the number of a trace.
 * Neither has as many: of those that a damaged stream has 60 bits count.
 */
enum { OF_HOST = 1, OF_LEAF, OF_TRACE, OF_LUA };

static inline uint64_t key_of(unsigned int kind, uint64_t more)
{
	return (uint64_t)kind << 60 | (more & ~(UINT64_C(15) << 60));
}

/* Where (@a, @b) may be among the recent ones. */
static inline struct seam_sysprof_meaning *
recent_of(struct seam_sysprof_names *n, uint64_t a, uint64_t b)
{
	uint64_t hash = (a ^ b << 7) * UINT64_C(0x9e3779b97f4a7c15);

	return &n->recent[(hash >> 40) % SEAM_SYSPROF_RECENT];
}

static inline bool is_valid(const struct seam_sysprof_names *n,
			    const struct seam_sysprof_meaning *m, uint64_t a,
			    uint64_t b)
{
	return m->key[0] == a && m->key[1] == b && m->epoch == n->epoch;
}

/* The place of (@value, @kind and @more); @named makes it where it is new. */
#define LOOK_UP(n, value, kind, more, named)				\
	({								\
		uint64_t a_ = (value), b_ = key_of(kind, more);		\
		struct seam_sysprof_meaning *r_ = recent_of(n, a_, b_), *m_; \
		struct seam_sysprof_place none_ = { .frame = SEAM_NONE }; \
									\
		m_ = is_valid(n, r_, a_, b_) ? r_ : find(n, a_, b_);	\
		if (m_ && m_->epoch != (n)->epoch) {			\
			m_->place = (named);				\
			m_->epoch = (n)->epoch;				\
		}							\
		if (m_ && m_ != r_)					\
			*r_ = *m_;					\
		m_ ? m_->place : none_;					\
	})

struct seam_sysprof_place
seam_sysprof_names_host(struct seam_sysprof_names *n, uint64_t addr,
			bool is_leaf)
{
	return LOOK_UP(n, addr, is_leaf ? OF_LEAF : OF_HOST, 0ull,
		       name_host(n, addr, is_leaf));
}

struct seam_sysprof_place
seam_sysprof_names_lua(struct seam_sysprof_names *n,
		       const struct seam_sysprof_frame *frame)
{
	return LOOK_UP(n, frame->value, OF_LUA + frame->kind, frame->line,
		       name_lua(n, frame));
}

struct seam_sysprof_place
seam_sysprof_names_trace(struct seam_sysprof_names *n,
			 const struct seam_sysprof_trace *trace)
{
	return LOOK_UP(n, trace->addr, OF_TRACE, trace->traceno,
		       name_trace(n, trace));
}
