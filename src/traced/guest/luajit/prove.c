/* SPDX-License-Identifier: MIT */
/*
 * prove.c - samples of a state of its own against the public interface
 *
 * A chunk calls check() from every kind of place: below varargs, pcall,
 * coroutines, metamethods, sort, gsub, a deep recursion.  There a sample is
 * taken as a handler takes it, and compared with lua_getstack() and
 * lua_getinfo(): as many frames, of the same kinds, sources, lines, current
 * lines and names, and the state of a C function.  Then samples in the garbage
 * collector and in compiled code are compared with what is known there.
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "traced/guest/luajit/luajit.h"

static const char program[] =
	"local check, deep = ..., nil\n"
	"local function f(...) local r = check() return r end\n"
	"f() f(1, 2, 3)\n"
	"assert(pcall(f, 1))\n"
	"assert(xpcall(f, function(e) return e end))\n"
	"coroutine.wrap(function(a)\n"
	"  f(a)\n"
	"  coroutine.wrap(function() coroutine.yield(f()) check() end)()\n"
	"  coroutine.yield(1)\n"
	"end)(7)\n"
	"local co = coroutine.wrap(function()\n"
	"  pcall(function() coroutine.yield() check() f() end)\n"
	"end)\n"
	"co() co()\n"
	"string.gsub('ab', '.', function(c)\n"
	"  check() return c\n"
	"end)\n"
	"table.sort({3, 1, 2}, function(a, b)\n"
	"  check()\n"
	"  return a < b\n"
	"end)\n"
	"local t = setmetatable({}, {\n"
	"  __index = function(t, k) check() return k end,\n"
	"  __add = function(a, b)\n"
	"    f()\n"
	"    return 1 end,\n"
	"  __concat = function() check() return '' end,\n"
	"  __call = function(self, ...) return 1, check(...) end,\n"
	"  __tostring = function() check() return 't' end,\n"
	"  __lt = function() check() return true end,\n"
	"})\n"
	"local x = t.x, t + 1, 't' .. t, t(1, 2), tostring(t), t < t\n"
	"for k in function(s, v) check() if not v then return 1 end end do\n"
	"  f(k)\n"
	"end\n"
	"pcall(function() check() error('x') end)\n"
	"function deep(n)\n"
	"  if n == 0 then return check() end\n"
	"  local r = deep(n - 1)\n"
	"  return r\n"
	"end\n"
	"deep(100)\n"
	"function seam_global() check() end seam_global()\n"
	"function t.field() check() end t.field()\n"
	"function t:method() check() end t:method()\n"
	"local function up() check() end\n"
	"local function calls_up() local a = t up() return a end\n"
	"calls_up()\n"
	"local h = function() check() end\n"
	"local function calls_local() local g, a = h, t g() return a end\n"
	"calls_local()\n"
	"loadstring('local c = ... c()', '=other')(check)\n";

static const char loop[] =
	"local t = {}\n"
	"return function()\n"
	"  for i = 1, 500 do\n"
	"    t[i % 8] = {i}\n"
	"  end\n"
	"end\n";

enum {
	N_RESULTS = 7,
	LOOP_LINE = 2, LOOP_END = 5, MIN_CHECKS = 24, SOURCE_BYTES = 200,
	/* samples that are enough */
	MAX_TRACES = 8, MAX_COLLECTIONS = 8,
	MAX_TRACE_ROOM = 1 << 12,	/* that a VM has for the first */
};

/* The proof that runs: what the VM calls has no other way to it. */
static struct {
	const struct seam_luajit_object *object;
	struct seam_guest_sample *sample;
	struct seam_guest_memory memory;	/* from a sample on */
	seam_lua_alloc alloc;
	void *alloc_context;
	char *reason;
	size_t size;
	uint64_t frame;			/* of seam_luajit_prove() */
	unsigned int n_checks, n_gc, n_traces, n_places;
	bool is_collecting;
	bool is_refused;
} proof;

__attribute__((format(printf, 1, 2)))
static bool refuse(const char *format, ...)
{
	va_list args;

	if (!proof.is_refused) {
		va_start(args, format);
		vsnprintf(proof.reason, proof.size, format, args);
		va_end(args);
	}
	proof.is_refused = true;
	return false;
}

static void take(void)
{
	ucontext_t context;

	getcontext(&context);
	proof.sample->with_c = true;
	seam_guest_take(&context, proof.sample);
	seam_guest_memory_init(&proof.memory);
}

/* --- frames --- */

/* Sizes: of the bytecode, before the lines, and of the chunk's name. */
static bool compare_sizes(size_t i, const struct seam_lua_debug *debug)
{
	const struct seam_luajit_offsets *at = &proof.object->lj.at;
	uint64_t proto = proof.sample->origins[i].address, lines, chunk;
	uint32_t n, length;

	if (!seam_guest_u64(&proof.memory, proto + at->pt_lineinfo, &lines) ||
	    !seam_guest_u64(&proof.memory, proto + at->pt_chunkname, &chunk) ||
	    !seam_guest_u32(&proof.memory, proto + at->pt_sizebc, &n) ||
	    !seam_guest_u32(&proof.memory, chunk + at->s_len, &length))
		return refuse("frame %zu has no prototype", i);
	if (n < 2 || lines - proto < at->pt_bytes + 4 * (uint64_t)n)
		return refuse("frame %zu has %u instructions", i, n);
	return length == strnlen(debug->source, SOURCE_BYTES) ||
	       refuse("frame %zu has a chunk's name of %u bytes", i, length);
}

/*
 * The VM has names for what is called by instructions of its own as well, and
 * for variables of its own: "(for generator)".
 */
static bool compare_name(size_t i, const struct seam_guest_symbol *symbol,
			 const struct seam_lua_debug *debug)
{
	static const char *const kinds[] = { "global", "local", "upvalue",
					     "field", "method" };

	for (size_t k = 0; debug->name && k < SEAM_ARRAY_SIZE(kinds); k++)
		if (strcmp(debug->namewhat, kinds[k]) == 0 &&
		    debug->name[0] != '(' &&
		    (strnlen(debug->name, SOURCE_BYTES) != symbol->n_name ||
		     memcmp(debug->name, symbol->name, symbol->n_name)))
			return refuse("frame %zu is named '%.*s', not after "
				      "%s '%s'", i, symbol->n_name,
				      symbol->name, kinds[k], debug->name);
	return true;
}

/* One frame of the sample, and what the VM says of that level. */
static bool compare(size_t i, const struct seam_lua_debug *debug)
{
	const struct seam_guest_sample *s = proof.sample;
	const struct seam_guest_origin *origin = &s->origins[i];
	uint32_t line = seam_guest_frame_line(s->frames[i]);
	bool is_guest = seam_guest_frame_kind(s->frames[i]) ==
			SEAM_GUEST_FRAME_GUEST;
	struct seam_guest_symbol symbol;

	if (is_guest == (debug->what[0] == 'C'))
		return refuse("frame %zu is %s function", i,
			      is_guest ? "a Lua" : "no Lua");
	if (!is_guest)
		return true;
	if ((int)origin->first_line != debug->linedefined)
		return refuse("frame %zu was defined on line %u, not %d", i,
			      origin->first_line, debug->linedefined);
	if ((int)line != debug->currentline)
		return refuse("frame %zu is on line %u, not %d", i, line,
			      debug->currentline);
	if (seam_guest_describe(s->frames[i].id, &symbol) < 0)
		return refuse("frame %zu has no name", i);
	if (strnlen(debug->source, SOURCE_BYTES) != symbol.n_chunk ||
	    memcmp(debug->source, symbol.chunk, symbol.n_chunk))
		return refuse("frame %zu is of another chunk", i);
	if ((int)symbol.last_line != debug->lastlinedefined)
		return refuse("frame %zu ends on line %u, not %d", i,
			      symbol.last_line, debug->lastlinedefined);
	return compare_sizes(i, debug) && compare_name(i, &symbol, debug);
}

/* All frames of thread @lua, in order. */
static bool compare_thread(struct seam_lua *lua)
{
	const struct seam_guest_sample *s = proof.sample;
	const struct seam_lua_api *api = &proof.object->api;
	struct seam_lua_debug debug;
	size_t frame = 0;
	int level = 0;

	for (size_t i = 0; i < s->head.n_segments; i++) {
		size_t end = frame + s->segments[i].n_frames;

		if (s->segments[i].thread != (uint64_t)(uintptr_t)lua) {
			frame = end;
			continue;
		}
		for (; frame < end; frame++) {
			if (!api->getstack(lua, level++, &debug) ||
			    !api->getinfo(lua, "Sln", &debug))
				return refuse("there are more than %d frames",
					      level - 1);
			if (!compare(frame, &debug))
				return false;
		}
	}
	return !api->getstack(lua, level, &debug) ||
	       refuse("there are more frames than %d", level);
}

/*
 * A C function's arguments are between base and top, and it has room for some
 * more below maxstack; the stack's size counts some slots beyond that.
 */
static bool compare_state(struct seam_lua *lua)
{
	enum { MIN_SLOTS = 20, MAX_BEYOND = 16 };
	const struct seam_luajit *lj = &proof.object->lj;
	struct seam_luajit_thread thread;
	uint64_t top, slots;
	uint32_t n;

	if (!seam_luajit_read_thread(lj, &proof.memory,
				     (uint64_t)(uintptr_t)lua, &thread) ||
	    !seam_guest_u64(&proof.memory, thread.addr + lj->at.l_top, &top) ||
	    !seam_guest_u32(&proof.memory, thread.addr + lj->at.l_stacksize,
			    &n))
		return refuse("a thread is not what it should be");
	if (top - thread.base !=
	    8 * (uint64_t)proof.object->api.gettop(lua))
		return refuse("a function's values are not between base and "
			      "top");
	slots = (thread.maxstack - thread.stack) / 8;
	if (thread.maxstack < top + 8 * MIN_SLOTS || n < slots ||
	    n > slots + MAX_BEYOND)
		return refuse("a stack's end is not where it should be");
	return true;
}

static bool is_whole(void)
{
	const struct seam_guest_sample *s = proof.sample;

	if (s->head.guest_end != SEAM_GUEST_COMPLETE)
		return refuse("a stack of Lua functions is not complete "
			      "(%u)", s->head.guest_end);
	/* what called us may be no code that can be walked */
	if (!s->stack.n || s->host[s->stack.n - 1].sp < proof.frame)
		return refuse("the host's stack is not complete (%u)",
			      s->stack.end);
	return true;
}

static int check(struct seam_lua *lua);

/*
 * The innermost frame is check() itself; the outermost activation is that of
 * the proof, and the next one was asked for a number of results.
 */
static bool compare_ends(void)
{
	const struct seam_guest_sample *s = proof.sample;
	const struct seam_guest_activation *outer = s->activations;
	const struct seam_guest_activation *asked = outer;
	uint32_t n_results;

	/* the program that is sampled may run in a VM as well */
	for (size_t i = 0; i < s->head.n_segments; i++)
		if (s->activations[i].vm == s->head.vm) {
			asked = outer;
			outer = &s->activations[i];
		}
	if (s->origins[0].address != (uint64_t)(uintptr_t)check)
		return refuse("a C function is not what was called");
	return (seam_guest_u32(&proof.memory,
			       asked->notes[SEAM_LUAJIT_NOTE_CFRAME] +
			       proof.object->lj.at.cf_nres, &n_results) &&
		n_results == N_RESULTS + 1) ||
	       refuse("the number of results is not where it should be");
}

/* Called by the program: takes a sample of where it was called. */
static int check(struct seam_lua *lua)
{
	if (proof.is_refused)
		return 0;
	proof.n_checks++;
	take();
	if (is_whole() && compare_state(lua) && compare_thread(lua) &&
	    compare_ends() &&
	    proof.sample->head.vmstate != SEAM_VMSTATE_CFUNC)
		refuse("the state in a C function is %u",
		       proof.sample->head.vmstate);
	return 0;
}

/* --- the collector and compiled code --- */

/* In compiled code jit_base is in the thread's stack. */
static bool has_jit_base(void)
{
	const struct seam_guest_sample *s = proof.sample;
	const struct seam_luajit *lj = &proof.object->lj;
	struct seam_luajit_thread thread;
	uint64_t base;

	return (s->head.n_segments &&
		seam_luajit_read_thread(lj, &proof.memory,
					s->segments[0].thread, &thread) &&
		seam_guest_u64(&proof.memory, thread.g + lj->at.g_jit_base,
			       &base) &&
		seam_luajit_is_base(&thread, base)) ||
	       refuse("compiled code has no base");
}

/* The trace is in front, and starts in the loop. */
static bool has_trace(void)
{
	const struct seam_guest_sample *s = proof.sample;
	struct seam_guest_symbol trace, start;
	uint32_t room;

	if (!proof.object->lj.at.g_trace)
		return true;
	if (!s->trace || seam_guest_describe(s->frames[0].id, &trace) < 0 ||
	    trace.kind != SEAM_GUEST_FRAME_TRACE)
		return refuse("compiled code is of no trace");
	if (!seam_guest_u32(&proof.memory, s->head.vm +
			    proof.object->lj.at.g_sizetrace, &room) ||
	    room > MAX_TRACE_ROOM)
		return refuse("the table of traces is too large");
	if (trace.line <= LOOP_LINE || trace.line > LOOP_END ||
	    seam_guest_describe(trace.start, &start) < 0 ||
	    start.line != LOOP_LINE)
		return refuse("a trace starts on line %u", trace.line);
	return true;
}

/* The frame above C's: the loop's function, at its place. */
static bool is_in_loop(void)
{
	const struct seam_guest_sample *s = proof.sample;

	if (!has_jit_base() || !has_trace())
		return false;
	for (size_t i = 0; i < s->n_frames; i++)
		if (seam_guest_frame_kind(s->frames[i]) ==
		    SEAM_GUEST_FRAME_GUEST)
			return s->origins[i].first_line == LOOP_LINE ||
			       refuse("compiled code is of line %u, not %d",
				      s->origins[i].first_line, LOOP_LINE);
	return refuse("compiled code is of no function");
}

/* The C frame of an interpreted function that allocates has its place. */
static void look_at_place(void)
{
	const struct seam_guest_sample *s = proof.sample;
	const struct seam_luajit *lj = &proof.object->lj;
	uint64_t pc;

	if (s->head.vmstate != SEAM_VMSTATE_LFUNC ||
	    s->activations[0].kind != SEAM_LUAJIT_AT_CALL)
		return;
	/* where the compiler is called, it is of another function */
	proof.n_places += seam_guest_u64(&proof.memory,
			s->activations[0].notes[SEAM_LUAJIT_NOTE_CFRAME] +
			lj->at.cf_pc, &pc) &&
		seam_luajit_has_pc(lj, &proof.memory, s->origins[0].address,
				   pc);
}

/* The allocator, of the loop's tables and of the collector. */
static void *check_alloc(void *context, void *block, size_t old_size,
			 size_t size)
{
	const struct seam_guest_head *head = &proof.sample->head;

	(void)context;
	if (proof.is_refused || proof.n_traces > MAX_TRACES ||
	    (proof.is_collecting && proof.n_gc > MAX_COLLECTIONS))
		return proof.alloc(proof.alloc_context, block, old_size, size);
	take();
	if (head->guest_end != SEAM_GUEST_ABSENT && is_whole()) {
		look_at_place();
		proof.n_gc += head->vmstate == SEAM_VMSTATE_GC;
		if (head->vmstate == SEAM_VMSTATE_TRACE) {
			proof.n_traces++;
			is_in_loop();
		}
	}
	return proof.alloc(proof.alloc_context, block, old_size, size);
}

static int collect(struct seam_lua *lua)
{
	proof.object->api.gc(lua, SEAM_LUA_GC_COLLECT, 0);
	return 0;
}

static bool run_loop(struct seam_lua *lua)
{
	const struct seam_lua_api *api = &proof.object->api;
	unsigned int n_traces;
	bool is_run;

	if (!seam_lua_run(api, lua, loop, "@seam-proof.lua", 1))
		return refuse("a chunk does not run");
	proof.alloc = api->getallocf(lua, &proof.alloc_context);
	api->setallocf(lua, check_alloc, NULL);
	is_run = api->pcall(lua, 0, 0, 0) == SEAM_LUA_OK;
	n_traces = proof.n_traces;
	proof.n_traces = proof.n_gc = 0;
	proof.is_collecting = true;
	api->pushcclosure(lua, collect, 0);
	is_run = api->pcall(lua, 0, 0, 0) == SEAM_LUA_OK && is_run;
	api->setallocf(lua, proof.alloc, proof.alloc_context);
	if (!is_run)
		return refuse("a chunk does not run");
	if (!proof.is_refused && !proof.n_places)
		return refuse("no C frame has its function's place");
	if (!proof.is_refused && !proof.n_gc)
		return refuse("the collector's state is not seen");
	if (proof.object->lj.at.g_trace && !proof.is_refused && !n_traces)
		return refuse("compiled code is not seen");
	return !proof.is_refused;
}

static bool run_program(struct seam_lua *lua)
{
	const struct seam_lua_api *api = &proof.object->api;
	static unsigned int n;	/* so that no name is that of another proof */
	char name[32];

	snprintf(name, sizeof(name), "@seam-proof-%u.lua", n++);
	if (api->loadbuffer(lua, program, sizeof(program) - 1, name) !=
	    SEAM_LUA_OK)
		return refuse("a chunk does not compile");
	api->pushcclosure(lua, check, 0);
	if (api->pcall(lua, 1, N_RESULTS, 0) != SEAM_LUA_OK &&
	    !proof.is_refused)
		return refuse("a chunk does not run: %s",
			      api->tolstring(lua, -1, NULL));
	if (!proof.is_refused && proof.n_checks < MIN_CHECKS)
		return refuse("only %u places were seen", proof.n_checks);
	return !proof.is_refused;
}

static int run_all(struct seam_lua *lua)
{
	proof.object->api.openlibs(lua);
	if (run_program(lua))
		run_loop(lua);
	return 0;
}

bool seam_luajit_prove(void *object, char *reason, size_t size)
{
	const char *failure;

	memset(&proof, 0, sizeof(proof));
	proof.object = object;
	proof.frame = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	proof.reason = reason;
	proof.size = size;
	proof.sample = mmap(NULL, sizeof(*proof.sample),
			    PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (proof.sample == MAP_FAILED)
		return refuse("out of memory");
	failure = seam_lua_protect(&proof.object->api, run_all);
	munmap(proof.sample, sizeof(*proof.sample));
	return failure ? refuse("%s", failure) : !proof.is_refused;
}
