/* SPDX-License-Identifier: MIT */
/*
 * calibrate.c - find a build's layout by experiments on a state of its own
 *
 * Each experiment changes one thing through the public interface and looks
 * which words of the state change; a place must be the only one that fits.
 *
 * Not in a handler; one thread at a time.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "traced/guest/luajit/luajit.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_readers.h"

enum {
	STATE_BYTES = 128,	/* searched; lua_State has 96 */
	GLOBAL_BYTES = 1024,	/* global_State has 728 */
	MIN_POINTER = 1 << 16,
	MAX_FRESH_STACK = 8192,	/* bytes of a new thread's stack */
};

/* The calibration that runs: functions that the VM calls have no other way. */
static struct {
	const struct seam_lua_api *api;
	struct seam_lua *lua;		/* a state with libraries */
	uint64_t l, g;			/* its lua_State and global_State */
	struct seam_luajit *layout;
	struct seam_guest_memory memory;
	char *reason;			/* of the refusal */
	size_t reason_size;
	bool is_done;
} cal;

/* --- experiments --- */

/* Note a refusal; returns false. */
__attribute__((format(printf, 1, 2)))
static bool refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cal.reason, cal.reason_size, format, args);
	va_end(args);
	return false;
}

/* Reads that do not fault; 0 where nothing can be read. */
static uint64_t u64_at(uint64_t addr)
{
	uint64_t value;

	return seam_guest_u64(&cal.memory, addr, &value) ? value : 0;
}

static uint32_t u32_at(uint64_t addr)
{
	uint32_t value;

	return seam_guest_u32(&cal.memory, addr, &value) ? value : 0;
}

/* Whether the bytes at @addr are those of @text. */
static bool has_text(uint64_t addr, const char *text)
{
	uint8_t byte;

	do {
		if (!seam_guest_u8(&cal.memory, addr++, &byte) ||
		    byte != (uint8_t)*text)
			return false;
	} while (*text++);
	return true;
}

/* What the value at @index of the Lua stack refers to. */
static uint64_t addr_at(int index)
{
	return (uint64_t)(uintptr_t)cal.api->topointer(cal.lua, index);
}

/* Offsets at which a test held: the first, and their number. */
struct fitting {
	uint16_t at;
	unsigned int n;
};

static void place(struct fitting *places, bool fits, size_t offset)
{
	if (fits && places->n++ == 0)
		places->at = (uint16_t)offset;
}

/* Whether the test held at one offset, or a refusal that names @what. */
static bool only(const struct fitting *places, const char *what,
		 uint16_t *offset)
{
	*offset = places->at;
	return places->n == 1 ||
	       refuse("%s: %u places fit, not 1", what, places->n);
}

/* Load @text, a chunk of name @name, and call it for @n_results values. */
static bool run(const char *text, const char *name, int n_results)
{
	return seam_lua_run(cal.api, cal.lua, text, name, n_results);
}

/* --- lua_State --- */

/* An object begins with a pointer, a byte of marks, and its type. */
static bool has_wide_pointers(void)
{
	uint8_t type;

	if (seam_luajit_is(&cal.memory, cal.l, SEAM_LUAJIT_THREAD))
		return true;
	if (seam_guest_u8(&cal.memory, cal.l + 5, &type) &&
	    type == SEAM_LUAJIT_THREAD)
		return refuse("its pointers have 32 bits: not a GC64 build");
	return refuse("a thread's type is not in its header");
}

/* All threads of a VM have it, and only it but for their environment. */
static bool find_glref(uint64_t thread)
{
	struct fitting glref = { .n = 0 };
	uint64_t env = addr_at(SEAM_LUA_GLOBALS);

	for (size_t o = 16; o < STATE_BYTES && glref.n == 0; o += 8) {
		uint64_t word = u64_at(cal.l + o);

		place(&glref, word >= MIN_POINTER && !(word & 7) &&
			      word != env && u64_at(thread + o) == word, o);
	}
	if (!only(&glref, "lua_State.glref", &cal.layout->at.l_glref))
		return false;
	cal.g = u64_at(cal.l + cal.layout->at.l_glref);
	return true;
}

/* Three values more on the stack move top, and not base. */
static bool find_top(void)
{
	struct fitting top = { .n = 0 }, base = { .n = 0 };
	uint64_t before[STATE_BYTES / 8];
	int n = cal.api->gettop(cal.lua);

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(before); i++)
		before[i] = u64_at(cal.l + 8 * i);
	for (int i = 0; i < 3; i++)
		cal.api->pushnumber(cal.lua, 1.5e300 * (i + 1));
	for (size_t i = 2; i < SEAM_ARRAY_SIZE(before); i++)
		place(&top, u64_at(cal.l + 8 * i) - before[i] == 24, 8 * i);
	for (size_t i = 2; i < SEAM_ARRAY_SIZE(before); i++)
		place(&base, top.n == 1 &&
			     u64_at(cal.l + 8 * i) == before[i] &&
			     before[top.at / 8] - before[i] == 8 * (uint64_t)n,
		      8 * i);
	cal.api->settop(cal.lua, n);
	return only(&top, "lua_State.top", &cal.layout->at.l_top) &&
	       only(&base, "lua_State.base", &cal.layout->at.l_base);
}

/* A new thread's base is two slots above its stack, a small one. */
static bool find_stack(uint64_t thread)
{
	struct seam_luajit_offsets *at = &cal.layout->at;
	struct fitting stack = { .n = 0 }, max = { .n = 0 }, size = { .n = 0 };
	uint64_t base = u64_at(thread + at->l_base), slots;

	for (size_t o = 16; o < STATE_BYTES; o += 8) {
		uint64_t word = u64_at(thread + o);

		place(&stack, word == base - 16, o);
		place(&max, o != at->l_top && word > base && !(word & 7) &&
			    word < base + MAX_FRESH_STACK, o);
	}
	if (!only(&stack, "lua_State.stack", &at->l_stack) ||
	    !only(&max, "lua_State.maxstack", &at->l_maxstack))
		return false;
	/* it counts some slots beyond maxstack */
	slots = (u64_at(thread + at->l_maxstack) -
		 u64_at(thread + at->l_stack)) / 8;
	for (size_t o = 16; o < STATE_BYTES; o += 4) {
		uint32_t word = u32_at(thread + o);

		place(&size, word >= slots && word <= slots + 16, o);
	}
	return only(&size, "lua_State.stacksize", &at->l_stacksize);
}

/* --- global_State --- */

/* What an experiment notes that the VM calls back to. */
static struct {
	seam_lua_alloc alloc;		/* the VM's */
	void *context;
	bool *has;			/* [GLOBAL_BYTES / 4] */
	uint64_t code, code_end;	/* bytecode of a function */
	struct fitting pc;
} noted;

/* Let the VM allocate by @function, which ends with the VM's own allocator. */
static void watch_allocator(seam_lua_alloc function)
{
	noted.alloc = cal.api->getallocf(cal.lua, &noted.context);
	cal.api->setallocf(cal.lua, function, NULL);
}

static void unwatch_allocator(void)
{
	cal.api->setallocf(cal.lua, noted.alloc, noted.context);
}

/* The allocator, in a step of the garbage collector. */
static void *alloc_in_gc(void *context, void *block, size_t old_size,
			 size_t size)
{
	(void)context;
	for (size_t i = 0; size < old_size && i < GLOBAL_BYTES / 4; i++)
		if (u32_at(cal.g + 4 * i) == ~(uint32_t)SEAM_LUAJIT_GC)
			noted.has[i] = true;
	return noted.alloc(noted.context, block, old_size, size);
}

/* It is ~C here, and ~GC in the allocator that the collector calls. */
static bool find_vmstate(void)
{
	struct fitting vmstate = { .n = 0 };
	bool has[GLOBAL_BYTES / 4] = { false };

	noted.has = has;
	if (!run("for i = 1, 50 do local t = {i} end", "=seam", 0))
		return refuse("a chunk does not run");
	watch_allocator(alloc_in_gc);
	cal.api->gc(cal.lua, SEAM_LUA_GC_COLLECT, 0);
	unwatch_allocator();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(has); i++)
		place(&vmstate, has[i] && u32_at(cal.g + 4 * i) ==
					  ~(uint32_t)SEAM_LUAJIT_C, 4 * i);
	return only(&vmstate, "global_State.vmstate",
		    &cal.layout->at.g_vmstate);
}

/* Which words of the global state are the thread that runs. */
static int note_thread(struct seam_lua *lua)
{
	for (size_t i = 0; i < GLOBAL_BYTES / 8; i++)
		noted.has[i] = u64_at(cal.g + 8 * i) ==
			       (uint64_t)(uintptr_t)lua;
	return 0;
}

/*
 * cur_L is the thread that runs; mainthref, between vmstate and it, always the
 * main thread.  Lists of the collector may have that as well, before them.
 */
static bool find_threads(void)
{
	struct fitting current = { .n = 0 }, main = { .n = 0 };
	bool in_main[GLOBAL_BYTES / 8], in_other[GLOBAL_BYTES / 8];
	struct seam_lua *other = cal.api->newthread(cal.lua);

	noted.has = in_main;
	cal.api->pushcclosure(cal.lua, note_thread, 0);
	cal.api->call(cal.lua, 0, 0);
	noted.has = in_other;
	cal.api->pushcclosure(other, note_thread, 0);
	if (cal.api->resume(other, 0) != SEAM_LUA_OK)
		return refuse("a coroutine does not run");
	for (size_t i = 2; i < GLOBAL_BYTES / 8; i++)
		place(&current, in_main[i] && in_other[i], 8 * i);
	for (size_t i = cal.layout->at.g_vmstate / 8; 8 * i < current.at; i++)
		place(&main, in_main[i] && !in_other[i] &&
			     u64_at(cal.g + 8 * i) == cal.l, 8 * i);
	cal.api->settop(cal.lua, -2);
	if (!only(&current, "global_State.cur_L", &cal.layout->at.g_cur_l))
		return false;
	cal.layout->at.g_jit_base = (uint16_t)(current.at + 8);
	return only(&main, "global_State.mainthref",
		    &cal.layout->at.g_mainthref);
}

/*
 * --- the interpreter's C frame and code
 *
 * The code is that of one entry of the image's call frame information, which
 * says the frame's size and where registers are saved.  Instructions that
 * change rsp are found by their bytes: call frame information of LuaJIT does
 * not describe prologues and epilogues.
 */

/* What the interpreter had when it called a C function. */
static struct {
	uint64_t rsp, dispatch, return_addr;
} seen __asm__("seam_luajit_seen") __attribute__((used));

/* What the C functions below found, in the inner one of two calls. */
static struct {
	struct fitting cframe, prev, nres;
	uint64_t l_places;		/* bit i: at 8 * i, always */
	uint64_t outer;			/* rsp of the outer activation */
} found;

enum {
	N_RESULTS = 91,		/* asked for; a rare number */
	SAVED_BYTES = 40,	/* saved registers and return address */
	MAX_INTERPRETER = 1 << 20,	/* bytes */
	MAX_FRAME = 512,	/* bytes; found.l_places has a bit for each 8 */
	ENTRY_BYTES = 128,
	FIRST_OF_CALLBACK = 16,	/* distance at its first instruction */
};

/*
 * A C function for the VM: keeps rsp of its caller, and r14, then goes on in
 * C.
 */
__attribute__((naked)) static int enter(struct seam_lua *lua
					__attribute__((unused)))
{
	__asm__("endbr64\n\t"
		"lea 8(%rsp), %rax\n\t"
		"mov %rax, seam_luajit_seen(%rip)\n\t"
		"mov %r14, 8+seam_luajit_seen(%rip)\n\t"
		"mov (%rsp), %rax\n\t"
		"mov %rax, 16+seam_luajit_seen(%rip)\n\t"
		"jmp seam_luajit_look");
}

static int look_at_frame(struct seam_lua *lua)
	__asm__("seam_luajit_look") __attribute__((used));

static void look_at_members(struct seam_lua *lua)
{
	size_t size = cal.layout->at.cf_bytes;

	for (size_t o = 16; o < STATE_BYTES; o += 8)
		place(&found.cframe, (u64_at(cal.l + o) & ~UINT64_C(3)) ==
				     seen.rsp, o);
	for (size_t o = 0; o < size; o += 8) {
		uint64_t word = u64_at(seen.rsp + o);

		if (word != (uint64_t)(uintptr_t)lua)
			found.l_places &= ~(UINT64_C(1) << o / 8);
		place(&found.prev, (word & ~UINT64_C(3)) == found.outer, o);
	}
	for (size_t o = 0; o < size; o += 4)
		place(&found.nres, u32_at(seen.rsp + o) == N_RESULTS + 1, o);
}

static int look_at_frame(struct seam_lua *lua)
{
	if (!cal.layout->at.cf_bytes)
		return 0;
	if (found.outer) {
		look_at_members(lua);
	} else {
		found.outer = seen.rsp;
		cal.api->pushcclosure(lua, enter, 0);
		cal.api->call(lua, 0, N_RESULTS);
	}
	return 0;
}

/* --- the code, by call frame information --- */

static bool has_rule(const struct seam_unwind_rules *rules, uint16_t id)
{
	static const struct { uint8_t column; int32_t value; } saved[] = {
		{ SEAM_X86_64_RBP, -16 }, { SEAM_X86_64_RBX, -24 },
		{ 15, -32 }, { 14, -40 }, { SEAM_X86_64_RIP, -8 },
	};
	const struct seam_unwind_rule *rule;
	size_t n = 0;

	if (id <= SEAM_UNWIND_BAD_CFI)
		return false;
	rule = &rules->rules.items[id];
	for (size_t i = 0; i < rule->n_saved; i++)
		for (size_t k = 0; k < SEAM_ARRAY_SIZE(saved); k++) {
			const struct seam_unwind_saved *s =
				&rules->saved.items[rule->first_saved + i];

			n += s->column == saved[k].column &&
			     s->how == SEAM_UNWIND_AT_CFA &&
			     s->value == saved[k].value;
		}
	return rule->cfa_how == SEAM_UNWIND_CFA_REGISTER &&
	       rule->cfa_column == SEAM_X86_64_RSP &&
	       rule->cfa_value > SAVED_BYTES && rule->cfa_value <= MAX_FRAME &&
	       n == SEAM_ARRAY_SIZE(saved);
}

/* The row of @table that has @addr, which the interpreter's code is. */
static bool find_row(const struct seam_self_image *image, uint64_t addr)
{
	const struct seam_unwind_table *table = image->table;
	uint64_t base = image->bias + table->base_addr;
	size_t i = 0;

	while (i + 1 < table->n && table->starts[i + 1] <= addr - base)
		i++;
	if (i + 1 >= table->n || !has_rule(&table->rules, table->ids[i]))
		return refuse("the interpreter's call frame information is "
			      "not that of LuaJIT's GC64 builds");
	cal.layout->at.cf_bytes = (uint16_t)
		table->rules.rules.items[table->ids[i]].cfa_value;
	cal.layout->code_start = base + table->starts[i];
	cal.layout->code_end = base + table->starts[i + 1];
	return true;
}

static bool find_code(void)
{
	const struct seam_self_images *images =
		atomic_load(&seam_self_current);

	for (size_t i = 0; images && i < images->n; i++) {
		const struct seam_self_image *image = &images->list[i];

		if (seen.return_addr - image->start <
		    image->end - image->start)
			return image->table ?
			       find_row(image, seen.return_addr - 1) :
			       refuse("the interpreter has no call frame "
				      "information");
	}
	return refuse("the interpreter is in no image");
}

/* --- instructions that change rsp --- */

/* Where instructions of a pattern begin, and the caller's rsp there. */
struct pattern {
	uint8_t bytes[16];
	uint8_t n;
	struct { uint8_t at, distance; } steps[7];
};

static const struct pattern patterns[] = {
	/* push rbp; push rbx; push r15; push r14; sub rsp, 40 */
	{ { 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28 }, 10,
	  { { 0, 8 }, { 1, 16 }, { 2, 24 }, { 4, 32 }, { 6, 40 } } },
	/* the same of a callback, whose stub has pushed rbp */
	{ { 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28 }, 9,
	  { { 0, 16 }, { 1, 24 }, { 3, 32 }, { 5, 40 } } },
	/* add rsp, 40; pop r14; pop r15; pop rbx; pop rbp; and ret or jmp */
	{ { 0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d }, 10,
	  { { 4, 40 }, { 6, 32 }, { 8, 24 }, { 9, 16 }, { 10, 8 } } },
};

static void add_edge(size_t at, uint32_t distance)
{
	struct seam_luajit *layout = cal.layout;
	struct seam_luajit_edge *edge = &layout->edges[layout->n_edges];

	if (layout->n_edges == SEAM_LUAJIT_MAX_EDGES ||
	    (layout->n_edges && edge[-1].addr >= at))
		return;
	*edge = (struct seam_luajit_edge) { (uint32_t)at, distance };
	layout->n_edges++;
}

static bool find_edges(const uint8_t *code, size_t size)
{
	size_t n[SEAM_ARRAY_SIZE(patterns)] = { 0 };
	uint64_t start = cal.layout->code_start;

	for (size_t i = 0; i + sizeof(patterns[0].bytes) < size; i++)
		for (size_t p = 0; p < SEAM_ARRAY_SIZE(patterns); p++) {
			const struct pattern *pattern = &patterns[p];

			if (memcmp(code + i, pattern->bytes, pattern->n))
				continue;
			n[p]++;
			/* entries follow each other; the last one is short */
			if (p == 0 && n[p] == 1)
				cal.layout->entry_start = start + i;
			if (p == 0)
				cal.layout->entry_end = start + i +
							ENTRY_BYTES;
			for (size_t s = 0; s < 7 &&
			     pattern->steps[s].distance; s++)
				add_edge(i + pattern->steps[s].at,
					 pattern->steps[s].distance);
		}
	return (n[0] >= 4 && n[2] >= 1) ||
	       refuse("the interpreter's prologues and epilogues are not "
		      "known ones");
}

/* Where @bytes are first in @code; @size where they are not. */
static size_t find_bytes(const uint8_t *code, size_t size,
			 const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i + n <= size; i++)
		if (memcmp(code + i, bytes, n) == 0)
			return i;
	return size;
}

/* From the first push of a trace's exit to where rsp is the C frame again. */
static bool find_exit(const uint8_t *code, size_t size)
{
	static const uint8_t pushes[] = {
		0x41, 0x55, 0x41, 0x54, 0x41, 0x53, 0x41, 0x52, 0x41, 0x51,
		0x41, 0x50, 0x57, 0x56, 0x55,
	};
	/* mov r13, [rcx - 8]; mov r12, [rcx]; mov rsp, rcx */
	static const uint8_t leaves[] = {
		0x4c, 0x8b, 0x69, 0xf8, 0x4c, 0x8b, 0x21, 0x48, 0x89, 0xcc,
	};
	size_t start = find_bytes(code, size, pushes, sizeof(pushes));
	size_t end = start + find_bytes(code + start, size - start, leaves,
					sizeof(leaves));

	/* a build without the compiler has neither */
	if (start == size)
		return true;
	if (end == size)
		return refuse("the end of a trace's exit is not a known one");
	cal.layout->exit_start = cal.layout->code_start + start;
	cal.layout->exit_end = cal.layout->code_start + end + sizeof(leaves);
	/* up to the entry of callbacks, the last prologue */
	cal.layout->subroutines_end = cal.layout->code_end;
	for (size_t i = 0; i < cal.layout->n_edges; i++)
		if (cal.layout->edges[i].bytes == FIRST_OF_CALLBACK)
			cal.layout->subroutines_end =
				cal.layout->code_start +
				cal.layout->edges[i].addr;
	return true;
}

/*
 * L is in the frame of each thread that calls, whatever it did before: a Lua
 * function in a coroutine has had its instruction's address stored.
 */
static bool find_l(void)
{
	static const char chunk[] = "local f = ... local t = {f} f(t) f()";
	struct fitting l = { .n = 0 };
	struct seam_lua *other = cal.api->newthread(cal.lua);

	if (cal.api->loadbuffer(other, chunk, sizeof(chunk) - 1, "=seam"))
		return refuse("a chunk does not run");
	cal.api->pushcclosure(other, enter, 0);
	if (cal.api->resume(other, 1) != SEAM_LUA_OK)
		return refuse("a coroutine does not run");
	for (size_t i = 0; i < 64; i++)
		place(&l, found.l_places >> i & 1, 8 * i);
	return only(&l, "the C frame's L", &cal.layout->at.cf_l);
}

static bool calibrate_frame(void)
{
	struct seam_luajit_offsets *at = &cal.layout->at;
	const uint8_t *code;
	size_t size;

	/* first the code and the frame's size, then what is in the frame */
	cal.api->pushcclosure(cal.lua, enter, 0);
	cal.api->call(cal.lua, 0, 0);
	if (!find_code())
		return false;
	/* it is mapped: it called us */
	code = (const uint8_t *)(uintptr_t)cal.layout->code_start;
	size = (size_t)(cal.layout->code_end - cal.layout->code_start);
	if (size >= MAX_INTERPRETER)
		return refuse("the interpreter has %zu bytes of code", size);
	if (!find_edges(code, size) || !find_exit(code, size))
		return false;
	memset(&found, 0, sizeof(found));
	found.l_places = (UINT64_C(1) << (at->cf_bytes - SAVED_BYTES) / 8) - 1;
	cal.api->pushcclosure(cal.lua, enter, 0);
	cal.api->call(cal.lua, 0, 0);
	at->g_dispatch = (uint16_t)(seen.dispatch - cal.g);
	if (seen.dispatch - cal.g >= UINT16_MAX || at->g_dispatch & 7)
		return refuse("r14 is not the dispatch table");
	return only(&found.cframe, "lua_State.cframe", &at->l_cframe) &&
	       only(&found.prev, "the C frame's link", &at->cf_prev) &&
	       only(&found.nres, "the C frame's number of results",
		    &at->cf_nres) && find_l();
}

/*
 * --- functions, prototypes, strings, bytecode
 *
 * The experiments are functions whose source is known: lines, names and
 * instructions of them are looked for in their prototypes.
 */

enum {
	MAX_PROTO = 256,	/* bytes of GCproto; it has 104 */
	FUNCTION_BYTES = 64,
	MAX_CODE = 64,		/* instructions of the functions below */
	FIRST_LINE = 6,
};

static const char chunk_name[] = "@seam-calibration.lua";

/* --- the function's code, and where its prototype begins --- */

/* The chunk's name is a string in the prototype; the text is in a string. */
static bool find_chunkname(uint64_t proto, size_t bytes)
{
	struct fitting name = { .n = 0 }, text = { .n = 0 }, len = { .n = 0 };
	uint64_t string = 0;

	for (size_t o = 16; o < bytes; o += 8) {
		uint64_t word = u64_at(proto + o);

		for (size_t t = 16; t <= 40; t += 4)
			if (seam_luajit_is(&cal.memory, word,
					   SEAM_LUAJIT_STRING) &&
			    has_text(word + t, chunk_name)) {
				place(&name, true, o);
				place(&text, true, t);
				string = word;
			}
	}
	for (size_t o = 12; name.n == 1 && o < text.at; o += 4)
		place(&len, u32_at(string + o) == sizeof(chunk_name) - 1, o);
	cal.layout->at.pt_chunkname = name.at;
	cal.layout->at.s_bytes = text.at;
	cal.layout->at.s_len = len.at;
	return name.n == 1 && len.n == 1;
}

/* Lines of the definition: first, and how many more. */
static bool find_firstline(uint64_t proto, size_t bytes, uint32_t n_lines)
{
	struct fitting line = { .n = 0 };

	for (size_t o = 16; o + 8 <= bytes; o += 4)
		place(&line, u32_at(proto + o) == FIRST_LINE &&
			     u32_at(proto + o + 4) == n_lines, o);
	cal.layout->at.pt_firstline = line.at;
	cal.layout->at.pt_numline = (uint16_t)(line.at + 4);
	return line.n == 1;
}

static bool is_proto(uint64_t proto, size_t bytes, uint32_t n_lines)
{
	return seam_luajit_is(&cal.memory, proto, SEAM_LUAJIT_PROTO) &&
	       find_chunkname(proto, bytes) &&
	       find_firstline(proto, bytes, n_lines);
}

/*
 * A word of a Lua function is the address of its code, which is after its
 * prototype.  0: refused.
 */
static uint64_t find_proto(uint64_t function, uint32_t n_lines)
{
	struct fitting code = { .n = 0 };
	uint16_t found_bytes = 0;
	uint64_t proto;

	for (size_t o = 16; o < FUNCTION_BYTES; o += 8) {
		uint64_t addr = u64_at(function + o);

		for (size_t bytes = 64; bytes <= MAX_PROTO && addr > bytes &&
		     !(addr & 3); bytes += 8)
			if (is_proto(addr - bytes, bytes, n_lines)) {
				place(&code, true, o);
				found_bytes = (uint16_t)bytes;
			}
	}
	if (!only(&code, "GCfuncL.pc", &cal.layout->at.f_pc))
		return 0;
	cal.layout->at.pt_bytes = found_bytes;
	proto = u64_at(function + code.at) - found_bytes;
	return is_proto(proto, found_bytes, n_lines) ? proto : 0;
}

/* Push a function of @text on line FIRST_LINE; where it is, or 0. */
static uint64_t make_function(const char *text)
{
	char chunk[512];

	snprintf(chunk, sizeof(chunk),
		 "local seam_up\n\n\n\n\nreturn function(seam_a, seam_b)%s",
		 text);
	return run(chunk, chunk_name, 1) ? addr_at(-1) : 0;
}

/* The prototype of @function, once pc and bytes are known. */
static uint64_t proto_of(uint64_t function)
{
	return u64_at(function + cal.layout->at.f_pc) -
	       cal.layout->at.pt_bytes;
}

/* --- what is in a prototype --- */

/* Ten instructions more add ten to it. */
static bool find_sizebc(uint64_t proto)
{
	struct fitting sizebc = { .n = 0 };
	uint64_t longer = make_function("\nseam_a=seam_b seam_a=seam_b "
		"seam_a=seam_b seam_a=seam_b seam_a=seam_b seam_a=seam_b "
		"seam_a=seam_b seam_a=seam_b seam_a=seam_b seam_a=seam_b "
		"seam_global() seam_a.seam_field() seam_up() seam_b() "
		"seam_a=2.5\nend");
	uint64_t other = longer ? proto_of(longer) : 0;

	for (size_t o = 12; o < cal.layout->at.pt_bytes; o += 4) {
		uint32_t n = u32_at(proto + o);

		place(&sizebc, n >= 8 && n < MAX_CODE &&
			       u32_at(other + o) == n + 10, o);
	}
	cal.api->settop(cal.lua, -2);
	return only(&sizebc, "GCproto.sizebc", &cal.layout->at.pt_sizebc);
}

/*
 * The constants' array points after the name of the global, and before the
 * number.
 */
static bool find_k(uint64_t proto)
{
	struct fitting k = { .n = 0 };

	for (size_t o = 16; o < cal.layout->at.pt_bytes; o += 8) {
		uint64_t array = u64_at(proto + o);
		uint64_t string = array & 7 ? 0 : u64_at(array - 8);

		place(&k, string && has_text(string + cal.layout->at.s_bytes,
					     "seam_global"), o);
	}
	return only(&k, "GCproto.k", &cal.layout->at.pt_k);
}

/* Names of variables are where their texts are; lines are in front of them. */
static bool find_debug_info(uint64_t proto)
{
	struct seam_luajit_offsets *at = &cal.layout->at;
	struct fitting lines = { .n = 0 }, up = { .n = 0 }, vars = { .n = 0 };
	uint64_t n = u32_at(proto + at->pt_sizebc);
	uint64_t code_end = proto + at->pt_bytes + 4 * n;

	for (size_t o = 16; o < at->pt_bytes; o += 8) {
		uint64_t word = u64_at(proto + o);
		uint8_t first = 0, last = 0;

		place(&up, has_text(word, "seam_up"), o);
		place(&vars, has_text(word, "seam_a"), o);
		/* a byte each: line 7, from 6 on, and the end's */
		place(&lines, word > code_end && word < code_end + 1024 &&
			      seam_guest_u8(&cal.memory, word, &first) &&
			      seam_guest_u8(&cal.memory, word + n - 2, &last) &&
			      first == 1 && last == 2, o);
	}
	return only(&lines, "GCproto.lineinfo", &at->pt_lineinfo) &&
	       only(&up, "GCproto.uvinfo", &at->pt_uvinfo) &&
	       only(&vars, "GCproto.varinfo", &at->pt_varinfo);
}

/*
 * seam_global() seam_a.seam_field() seam_up() seam_b(): for each the
 * instruction that loads the function, and the same call.
 */
static bool find_opcodes(uint64_t proto)
{
	uint8_t op[9];

	for (size_t i = 0; i < sizeof(op); i++)
		op[i] = (uint8_t)u32_at(proto + cal.layout->at.pt_bytes +
					4 * i);
	if (op[2] != op[4] || op[2] != op[6] || op[2] != op[8])
		return refuse("bytecode of four calls differs from LuaJIT's");
	cal.layout->op = (struct seam_luajit_opcodes) {
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

static bool find_c_function(void)
{
	struct fitting f = { .n = 0 };
	uint64_t function;

	cal.api->pushcclosure(cal.lua, do_nothing, 0);
	function = addr_at(-1);
	for (size_t o = 16; o < FUNCTION_BYTES; o += 8)
		place(&f, u64_at(function + o) ==
			  (uint64_t)(uintptr_t)do_nothing, o);
	cal.api->settop(cal.lua, -2);
	return only(&f, "GCfuncC.f", &cal.layout->at.f_c);
}

/* Names of the built-in functions in a table, by their numbers. */
static void name_builtins(const char *library)
{
	const struct seam_lua_api *api = cal.api;

	if (api->type(cal.lua, -1) != SEAM_LUA_TTABLE)
		return;
	for (api->pushnil(cal.lua); api->next(cal.lua, -2);
	     api->settop(cal.lua, -2)) {
		uint64_t addr = addr_at(-1);
		uint8_t number = 0;

		/* lua_tolstring() would change a key that is a number */
		if (api->type(cal.lua, -1) != SEAM_LUA_TFUNCTION ||
		    api->type(cal.lua, -2) != SEAM_LUA_TSTRING ||
		    !seam_guest_u8(&cal.memory, addr + 10, &number) ||
		    number < 2)
			continue;
		snprintf(cal.layout->builtins[number], SEAM_LUAJIT_BUILTIN_NAME,
			 "%s%s%s", library, *library ? "." : "",
			 api->tolstring(cal.lua, -2, NULL));
	}
}

/*
 * Those that no library's table names: methods of files, operations of the FFI,
 * what other functions return, the VM's modules that are loaded on request.
 */
static void name_methods(void)
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
	const struct seam_lua_api *api = cal.api;

	if (api->loadbuffer(cal.lua, text, sizeof(text) - 1, "=methods") == 0 &&
	    api->pcall(cal.lua, 0, 1, 0) == 0)
		for (api->pushnil(cal.lua); api->next(cal.lua, -2);
		     api->settop(cal.lua, -2))
			name_builtins(api->tolstring(cal.lua, -2, NULL));
	api->settop(cal.lua, -2);
}

static void find_builtins(void)
{
	static const char *const libraries[] = {
		"string", "table", "math", "coroutine", "os", "io", "debug",
		"bit", "jit", "package", "ffi",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(libraries); i++) {
		cal.api->getfield(cal.lua, SEAM_LUA_GLOBALS, libraries[i]);
		name_builtins(libraries[i]);
		cal.api->settop(cal.lua, -2);
	}
	name_methods();
	cal.api->pushvalue(cal.lua, SEAM_LUA_GLOBALS);
	name_builtins("");
	cal.api->settop(cal.lua, -2);
}

/* --- the C frame's member for the bytecode's address --- */

/* Called for the table that a Lua function makes. */
static void *look_at_pc(void *context, void *block, size_t old_size,
			size_t size)
{
	uint64_t cframe = u64_at(cal.l + cal.layout->at.l_cframe) &
			  ~UINT64_C(3);

	(void)context;
	for (size_t o = 0; cframe && !noted.pc.n &&
	     o < cal.layout->at.cf_bytes; o += 8) {
		uint64_t word = u64_at(cframe + o);

		place(&noted.pc, word > noted.code &&
				  word <= noted.code_end, o);
	}
	return noted.alloc(noted.context, block, old_size, size);
}

static bool find_frame_pc(void)
{
	const struct seam_luajit_offsets *at = &cal.layout->at;
	uint64_t proto = proto_of(make_function(
		" return {seam_b, 1, 2, 3} end"));
	int r;

	noted.code = proto + at->pt_bytes;
	noted.code_end = noted.code +
			  4 * (uint64_t)u32_at(proto + at->pt_sizebc);
	noted.pc.n = 0;
	watch_allocator(look_at_pc);
	r = cal.api->pcall(cal.lua, 0, 0, 0);
	unwatch_allocator();
	if (r != SEAM_LUA_OK)
		return refuse("a function does not run");
	return only(&noted.pc, "the C frame's bytecode address",
		    &cal.layout->at.cf_pc);
}

static bool calibrate_code(void)
{
	uint64_t function = make_function("\nseam_global() "
		"seam_a.seam_field() seam_up() seam_b() seam_a=2.5\nend");
	uint64_t proto;

	if (!function)
		return refuse("a chunk does not run");
	proto = find_proto(function, 2);
	if (!proto || !find_sizebc(proto) || !find_k(proto) ||
	    !find_debug_info(proto) || !find_opcodes(proto) ||
	    !find_c_function() || !find_frame_pc())
		return false;
	find_builtins();
	return true;
}

/*
 * --- compiled traces
 *
 * A loop is run until it is compiled: then trace 1 exists, and begins in that
 * function.  Where nothing is compiled, by choice of the build or the system,
 * a trace has no name of its own in samples.
 */

enum {
	SEARCHED = 16384,	/* bytes behind global_State */
	TRACE_BYTES = 136,	/* searched of GCtrace; it has 120 */
	TRACE = 1,
	MAX_SIZE = 1 << 12,	/* of the table, when it has one trace */
};

struct trace_places {
	struct fitting table, proto, number, pc;
};

/* The loop's prototype, its bytecode, and the number, in GCtrace. */
static void look_at_trace(uint64_t trace, uint64_t proto,
			  struct trace_places *places)
{
	uint64_t code = proto + cal.layout->at.pt_bytes;
	uint64_t code_end = code + 4 * (uint64_t)
		u32_at(proto + cal.layout->at.pt_sizebc);

	for (size_t o = 16; o < TRACE_BYTES; o += 8) {
		uint64_t word = u64_at(trace + o);

		place(&places->proto, word == proto, o);
		place(&places->pc, word > code && word < code_end, o);
	}
	for (size_t o = places->pc.at + 8u; o < TRACE_BYTES; o += 2) {
		uint32_t half = u32_at(trace + (o & ~3u));

		place(&places->number,
		      (uint16_t)(half >> 8 * (o & 2)) == TRACE, o);
	}
}

/* The table of traces, then two numbers, the second its size. */
static void look_for_table(uint64_t proto, struct trace_places *places)
{
	for (size_t o = 64; o < SEARCHED; o += 8) {
		uint64_t table = u64_at(cal.g + o);
		uint32_t size = u32_at(cal.g + o + 12);
		uint64_t trace = table && !(table & 7) && size > TRACE &&
				 size <= MAX_SIZE ?
				 u64_at(table + 8 * TRACE) : 0;
		struct trace_places inside = { .table.n = 0 };

		if (!seam_luajit_is(&cal.memory, trace, SEAM_LUAJIT_TRACE))
			continue;
		look_at_trace(trace, proto, &inside);
		if (inside.proto.n != 1 || inside.pc.n != 1 ||
		    !inside.number.n)
			continue;
		inside.table = places->table;
		*places = inside;
		place(&places->table, true, o);
	}
}

static void calibrate_trace(void)
{
	static const char loop[] =
		"local t = {}\n"
		"return function()\n"
		" for i = 1, 300 do t[i] = i end\n"
		"end";
	struct seam_luajit_offsets *at = &cal.layout->at;
	struct trace_places places = { .table.n = 0 };
	uint64_t function;

	if (!run(loop, "=seam", 1))
		return;
	function = addr_at(-1);
	cal.api->pushvalue(cal.lua, -1);
	if (cal.api->pcall(cal.lua, 0, 0, 0) != SEAM_LUA_OK)
		return;
	look_for_table(proto_of(function), &places);
	if (places.table.n != 1)
		return;
	at->g_trace = places.table.at;
	at->g_sizetrace = (uint16_t)(places.table.at + 12);
	at->t_startpt = places.proto.at;
	at->t_startpc = places.pc.at;
	at->t_number = places.number.at;
}

/* --- all of it --- */

static int calibrate(struct seam_lua *lua)
{
	uint64_t thread;

	cal.lua = lua;
	cal.l = (uint64_t)(uintptr_t)lua;
	cal.api->openlibs(lua);
	thread = (uint64_t)(uintptr_t)cal.api->newthread(lua);
	cal.is_done = has_wide_pointers() && find_glref(thread) &&
		      find_top() && find_stack(thread) && find_vmstate() &&
		      find_threads() && calibrate_frame() && calibrate_code();
	if (cal.is_done)
		calibrate_trace();
	cal.api->settop(lua, 0);
	return 0;
}

static void *attach(void *(*symbol)(void *image, const char *name),
		    void *image, char *reason, size_t size)
{
	struct seam_luajit_object *object = calloc(1, sizeof(*object));
	const char *missing, *failure = NULL;

	if (!object) {
		snprintf(reason, size, "out of memory");
		return NULL;
	}
	memset(&cal, 0, sizeof(cal));
	cal.api = &object->api;
	cal.layout = &object->lj;
	cal.reason = reason;
	cal.reason_size = size;
	if (!seam_lua_api_find(&object->api, symbol, image, &missing))
		refuse("it does not export %s", missing);
	else
		failure = seam_lua_protect(&object->api, calibrate);
	if (failure)
		refuse("%s", failure);
	if (!failure && cal.is_done)
		return object;
	free(object);
	return NULL;
}

const struct seam_guest_vm seam_luajit_vm = {
	.number = SEAM_GUEST_LUAJIT,
	.name = "LuaJIT",
	.symbol = "luaJIT_setmode",
	.attach = attach,
	.prove = seam_luajit_prove,
	.detach = free,
	.has_code = seam_luajit_has_code,
	.bridge = seam_luajit_bridge,
	.walk = seam_luajit_walk,
};
