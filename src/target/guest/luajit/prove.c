/* SPDX-License-Identifier: MIT */
/*
 * prove.c - samples of a state of its own against the public interface
 *
 * A chunk calls check() from every kind of place: below varargs, pcall,
 * coroutines, metamethods, sort, gsub, a deep recursion.  There a sample is
 * taken as a handler takes it, and compared with lua_getstack() and
 * lua_getinfo(): as many frames, of the same kinds, sources, lines and current
 * lines, and the state of a C function.  Then two samples are compared with
 * what is known: in the garbage collector, and in compiled code.
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "target/guest/luajit/luajit_vm.h"

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
	"loadstring('local c = ... c()', '=other')(check)\n";

static const char loop[] =
	"local t = {}\n"
	"return function()\n"
	"  for i = 1, 500 do\n"
	"    t[i % 8] = {i}\n"
	"  end\n"
	"end\n";

enum {
	LOOP_LINE = 2, MIN_CHECKS = 24, SOURCE_BYTES = 200,
	/* samples that are enough */
	MAX_TRACES = 8, MAX_COLLECTIONS = 8,
};

/* The proof that runs: what the VM calls has no other way to it. */
static struct {
	const struct seam_luajit_object *object;
	struct seam_guest_sample *sample;
	seam_lua_alloc alloc;
	void *alloc_context;
	char *reason;
	size_t size;
	unsigned int n_checks, n_gc, n_traces;
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
}

/* --- frames --- */

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
	return true;
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
			    !api->getinfo(lua, "Sl", &debug))
				return refuse("there are more than %d frames",
					      level - 1);
			if (!compare(frame, &debug))
				return false;
		}
	}
	return !api->getstack(lua, level, &debug) ||
	       refuse("there are more frames than %d", level);
}

static bool is_whole(void)
{
	const struct seam_guest_sample *s = proof.sample;

	if (s->head.guest_end != SEAM_GUEST_COMPLETE)
		return refuse("a stack of Lua functions is not complete "
			      "(%u)", s->head.guest_end);
	if (s->stack.end != SEAM_UNWIND_ROOT)
		return refuse("the host's stack is not complete (%u)",
			      s->stack.end);
	return true;
}

/* check() of the program: takes a sample of where it was called. */
static int check(struct seam_lua *lua)
{
	if (proof.is_refused)
		return 0;
	proof.n_checks++;
	take();
	if (is_whole() && compare_thread(lua) &&
	    proof.sample->head.vmstate != SEAM_VMSTATE_CFUNC)
		refuse("the state in a C function is %u",
		       proof.sample->head.vmstate);
	return 0;
}

/* --- the collector and compiled code --- */

/* The frame above C's: the loop's function, at its place. */
static bool is_in_loop(void)
{
	const struct seam_guest_sample *s = proof.sample;

	for (size_t i = 0; i < s->n_frames; i++)
		if (seam_guest_frame_kind(s->frames[i]) ==
		    SEAM_GUEST_FRAME_GUEST)
			return s->origins[i].first_line == LOOP_LINE ||
			       refuse("compiled code is of line %u, not %d",
				      s->origins[i].first_line, LOOP_LINE);
	return refuse("compiled code is of no function");
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
	if (!proof.is_refused && !proof.n_gc)
		return refuse("the collector's state is not seen");
	if (proof.object->lj.layout.at.g_trace && !proof.is_refused &&
	    !n_traces)
		return refuse("compiled code is not seen");
	return !proof.is_refused;
}

static bool run_program(struct seam_lua *lua)
{
	const struct seam_lua_api *api = &proof.object->api;

	if (api->loadbuffer(lua, program, sizeof(program) - 1,
			    "@seam-proof.lua") != SEAM_LUA_OK)
		return refuse("a chunk does not compile");
	api->pushcclosure(lua, check, 0);
	if (api->pcall(lua, 1, 0, 0) != SEAM_LUA_OK && !proof.is_refused)
		return refuse("a chunk does not run: %s",
			      api->tolstring(lua, -1, NULL));
	if (!proof.is_refused && proof.n_checks < MIN_CHECKS)
		return refuse("only %u places were seen", proof.n_checks);
	return !proof.is_refused;
}

bool seam_luajit_prove(void *object, char *reason, size_t size)
{
	struct seam_lua *lua;
	bool is_proven;

	memset(&proof, 0, sizeof(proof));
	proof.object = object;
	proof.reason = reason;
	proof.size = size;
	proof.sample = mmap(NULL, sizeof(*proof.sample),
			    PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (proof.sample == MAP_FAILED)
		return refuse("out of memory");
	lua = proof.object->api.newstate();
	if (lua) {
		proof.object->api.openlibs(lua);
		is_proven = run_program(lua) && run_loop(lua);
		proof.object->api.close(lua);
	} else {
		is_proven = refuse("cannot make a state");
	}
	munmap(proof.sample, sizeof(*proof.sample));
	return is_proven;
}
