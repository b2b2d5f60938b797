/* SPDX-License-Identifier: MIT */
/* calibrate.c - lua_State and global_State; see calibrate.h */
#include "traced/guest/luajit/calibrate.h"

#include <stdarg.h>

enum {
	STATE_BYTES = 128,	/* searched; lua_State has 96 */
	GLOBAL_BYTES = 1024,	/* global_State has 728 */
	MIN_POINTER = 1 << 16,
	MAX_FRESH_STACK = 8192,	/* bytes of a new thread's stack */
};

bool seam_luajit_refuse(struct seam_luajit_calibration *c, const char *format,
			...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->reason, c->reason_size, format, args);
	va_end(args);
	return false;
}

uint64_t seam_luajit_word(struct seam_luajit_calibration *c, uint64_t addr)
{
	uint64_t value;

	return seam_guest_u64(&c->memory, addr, &value) ? value : 0;
}

uint32_t seam_luajit_half(struct seam_luajit_calibration *c, uint64_t addr)
{
	uint32_t value;

	return seam_guest_u32(&c->memory, addr, &value) ? value : 0;
}

bool seam_luajit_has_text(struct seam_luajit_calibration *c, uint64_t addr,
			  const char *text)
{
	uint8_t byte;

	do {
		if (!seam_guest_u8(&c->memory, addr++, &byte) ||
		    byte != (uint8_t)*text)
			return false;
	} while (*text++);
	return true;
}

bool seam_luajit_only(struct seam_luajit_calibration *c,
		      const struct seam_luajit_places *places,
		      const char *what, uint16_t *offset)
{
	*offset = places->at;
	return places->n == 1 ||
	       seam_luajit_refuse(c, "%s: %u places fit, not 1", what,
				  places->n);
}

/* --- lua_State --- */

/* An object begins with a pointer, a byte of marks, and its type. */
static bool has_wide_pointers(struct seam_luajit_calibration *c)
{
	uint8_t type;

	if (seam_luajit_is(&c->memory, c->l, SEAM_LUAJIT_THREAD))
		return true;
	if (seam_guest_u8(&c->memory, c->l + 5, &type) &&
	    type == SEAM_LUAJIT_THREAD)
		return seam_luajit_refuse(c, "its pointers have 32 bits: not "
					  "a GC64 build");
	return seam_luajit_refuse(c, "a thread's type is not in its header");
}

/* All threads of a VM have it, and only it but for their environment. */
static bool find_glref(struct seam_luajit_calibration *c, uint64_t thread)
{
	struct seam_luajit_places places = { .n = 0 };
	uint64_t env = (uint64_t)(uintptr_t)
		c->api->topointer(c->lua, SEAM_LUA_GLOBALS);

	for (size_t o = 16; o < STATE_BYTES && places.n == 0; o += 8) {
		uint64_t word = seam_luajit_word(c, c->l + o);

		seam_luajit_place(&places, word >= MIN_POINTER && !(word & 7) &&
				  word != env &&
				  seam_luajit_word(c, thread + o) == word, o);
	}
	if (!seam_luajit_only(c, &places, "lua_State.glref",
			      &c->layout->at.l_glref))
		return false;
	c->g = seam_luajit_word(c, c->l + c->layout->at.l_glref);
	return true;
}

/* Three values more on the stack move top, and not base. */
static bool find_top(struct seam_luajit_calibration *c)
{
	struct seam_luajit_places top = { .n = 0 }, base = { .n = 0 };
	uint64_t before[STATE_BYTES / 8];
	int n = c->api->gettop(c->lua);

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(before); i++)
		before[i] = seam_luajit_word(c, c->l + 8 * i);
	for (int i = 0; i < 3; i++)
		c->api->pushnumber(c->lua, 1.5e300 * (i + 1));
	for (size_t i = 2; i < SEAM_ARRAY_SIZE(before); i++)
		seam_luajit_place(&top, seam_luajit_word(c, c->l + 8 * i) -
				  before[i] == 24, 8 * i);
	for (size_t i = 2; i < SEAM_ARRAY_SIZE(before); i++)
		seam_luajit_place(&base, top.n == 1 &&
				  seam_luajit_word(c, c->l + 8 * i) ==
					before[i] &&
				  before[top.at / 8] - before[i] ==
					8 * (uint64_t)n, 8 * i);
	c->api->settop(c->lua, n);
	return seam_luajit_only(c, &top, "lua_State.top",
				&c->layout->at.l_top) &&
	       seam_luajit_only(c, &base, "lua_State.base",
				&c->layout->at.l_base);
}

/* A new thread's base is two slots above its stack, a small one. */
static bool find_stack(struct seam_luajit_calibration *c, uint64_t thread)
{
	struct seam_luajit_offsets *at = &c->layout->at;
	struct seam_luajit_places stack = { .n = 0 }, max = { .n = 0 };
	struct seam_luajit_places size = { .n = 0 };
	uint64_t base = seam_luajit_word(c, thread + at->l_base), slots;

	for (size_t o = 16; o < STATE_BYTES; o += 8) {
		uint64_t word = seam_luajit_word(c, thread + o);

		seam_luajit_place(&stack, word == base - 16, o);
		seam_luajit_place(&max, o != at->l_top && word > base &&
				  !(word & 7) &&
				  word < base + MAX_FRESH_STACK, o);
	}
	if (!seam_luajit_only(c, &stack, "lua_State.stack", &at->l_stack) ||
	    !seam_luajit_only(c, &max, "lua_State.maxstack",
			      &at->l_maxstack))
		return false;
	/* it counts some slots beyond maxstack */
	slots = (seam_luajit_word(c, thread + at->l_maxstack) -
		 seam_luajit_word(c, thread + at->l_stack)) / 8;
	for (size_t o = 16; o < STATE_BYTES; o += 4) {
		uint32_t word = seam_luajit_half(c, thread + o);

		seam_luajit_place(&size, word >= slots && word <= slots + 16,
				  o);
	}
	return seam_luajit_only(c, &size, "lua_State.stacksize",
				&at->l_stacksize);
}

/* --- global_State --- */

/* What an experiment that the VM calls back to notes. */
struct noted {
	struct seam_luajit_calibration *c;
	seam_lua_alloc alloc;
	void *context;
	bool has[GLOBAL_BYTES / 4];
};

/* The allocator, in a step of the garbage collector. */
static void *alloc_in_gc(void *context, void *block, size_t old_size,
			 size_t size)
{
	struct noted *noted = context;

	for (size_t i = 0; size < old_size && i < SEAM_ARRAY_SIZE(noted->has);
	     i++)
		if (seam_luajit_half(noted->c, noted->c->g + 4 * i) ==
		    ~(uint32_t)SEAM_LUAJIT_GC)
			noted->has[i] = true;
	return noted->alloc(noted->context, block, old_size, size);
}

/* It is ~C here, and ~GC in the allocator that the collector calls. */
static bool find_vmstate(struct seam_luajit_calibration *c)
{
	struct seam_luajit_places places = { .n = 0 };
	struct noted noted = { .c = c };

	noted.alloc = c->api->getallocf(c->lua, &noted.context);
	if (!seam_lua_run(c->api, c->lua, "for i = 1, 50 do local t = {i} end",
			  "=seam", 0))
		return seam_luajit_refuse(c, "a chunk does not run");
	c->api->setallocf(c->lua, alloc_in_gc, &noted);
	c->api->gc(c->lua, SEAM_LUA_GC_COLLECT, 0);
	c->api->setallocf(c->lua, noted.alloc, noted.context);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(noted.has); i++)
		seam_luajit_place(&places, noted.has[i] &&
				  seam_luajit_half(c, c->g + 4 * i) ==
					~(uint32_t)SEAM_LUAJIT_C, 4 * i);
	return seam_luajit_only(c, &places, "global_State.vmstate",
				&c->layout->at.g_vmstate);
}

/* The calibration that runs: functions that the VM calls have no other way. */
static struct noted *noting;

/* Which words of the global state are the thread that runs. */
static int note_thread(struct seam_lua *lua)
{
	struct seam_luajit_calibration *c = noting->c;

	for (size_t i = 0; i < GLOBAL_BYTES / 8; i++)
		noting->has[i] = seam_luajit_word(c, c->g + 8 * i) ==
				 (uint64_t)(uintptr_t)lua;
	return 0;
}

/*
 * cur_L is the thread that runs; mainthref, between vmstate and it, always the
 * main thread.  Lists of the collector may have that as well, before them.
 */
static bool find_threads(struct seam_luajit_calibration *c)
{
	struct seam_luajit_places current = { .n = 0 }, main = { .n = 0 };
	struct noted in_main = { .c = c }, in_other = { .c = c };
	struct seam_lua *other = c->api->newthread(c->lua);

	noting = &in_main;
	c->api->pushcclosure(c->lua, note_thread, 0);
	c->api->call(c->lua, 0, 0);
	noting = &in_other;
	c->api->pushcclosure(other, note_thread, 0);
	if (c->api->resume(other, 0) != SEAM_LUA_OK)
		return seam_luajit_refuse(c, "a coroutine does not run");
	for (size_t i = 2; i < GLOBAL_BYTES / 8; i++)
		seam_luajit_place(&current, in_main.has[i] && in_other.has[i],
				  8 * i);
	for (size_t i = c->layout->at.g_vmstate / 8; 8 * i < current.at; i++)
		seam_luajit_place(&main, in_main.has[i] && !in_other.has[i] &&
				  seam_luajit_word(c, c->g + 8 * i) == c->l,
				  8 * i);
	c->api->settop(c->lua, -2);
	if (!seam_luajit_only(c, &current, "global_State.cur_L",
			      &c->layout->at.g_cur_l))
		return false;
	c->layout->at.g_jit_base = (uint16_t)(current.at + 8);
	return seam_luajit_only(c, &main, "global_State.mainthref",
				&c->layout->at.g_mainthref);
}

bool seam_luajit_calibrate(struct seam_luajit_calibration *c)
{
	struct seam_lua *thread = c->api->newthread(c->lua);
	bool is_found;

	c->l = (uint64_t)(uintptr_t)c->lua;
	memset(c->layout, 0, sizeof(*c->layout));
	seam_guest_memory_init(&c->memory);
	is_found = has_wide_pointers(c) &&
		   find_glref(c, (uint64_t)(uintptr_t)thread) && find_top(c) &&
		   find_stack(c, (uint64_t)(uintptr_t)thread) &&
		   find_vmstate(c) && find_threads(c) &&
		   seam_luajit_calibrate_frame(c) &&
		   seam_luajit_calibrate_code(c);
	if (is_found)
		seam_luajit_calibrate_trace(c);
	c->api->settop(c->lua, 0);
	return is_found;
}
