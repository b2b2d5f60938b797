/* SPDX-License-Identifier: MIT */
/*
 * calibrate_frame.c - the interpreter's C frame and code; see calibrate.h
 *
 * The code is that of one entry of the image's call frame information, which
 * says the frame's size and where registers are saved.  Instructions that
 * change rsp are found by their bytes: call frame information of LuaJIT does
 * not describe prologues and epilogues.
 */
#include "traced/guest/luajit/calibrate.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_readers.h"

/* What the interpreter had when it called a C function. */
static struct {
	uint64_t rsp, dispatch, return_addr;
} seen __asm__("seam_luajit_seen") __attribute__((used));

static struct seam_luajit_calibration *calibrating;

/* What the C functions below found, in the inner one of two calls. */
static struct {
	struct seam_luajit_places cframe, cf_prev, cf_nres;
	uint64_t l_places;		/* bit i: at 8 * i, always */
	uint64_t outer;			/* rsp of the outer activation */
} found;

enum {
	N_RESULTS = 91,		/* asked for; a rare number */
	SAVED_BYTES = 40,	/* saved registers and return address */
	MAX_FRAME = 512,	/* bytes; found.l_places has a bit for each 8 */
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
	struct seam_luajit_calibration *c = calibrating;
	struct seam_luajit_offsets *at = &c->layout->at;

	for (size_t o = 16; o < 128; o += 8)
		seam_luajit_place(&found.cframe, (seam_luajit_word(c, c->l + o)
			& ~UINT64_C(3)) == seen.rsp, o);
	for (size_t o = 0; o < at->cf_bytes; o += 8) {
		uint64_t word = seam_luajit_word(c, seen.rsp + o);

		if (word != (uint64_t)(uintptr_t)lua)
			found.l_places &= ~(UINT64_C(1) << o / 8);
		seam_luajit_place(&found.cf_prev,
				  (word & ~UINT64_C(3)) == found.outer, o);
	}
	for (size_t o = 0; o < at->cf_bytes; o += 4)
		seam_luajit_place(&found.cf_nres,
				  seam_luajit_half(c, seen.rsp + o) ==
					N_RESULTS + 1, o);
}

static int look_at_frame(struct seam_lua *lua)
{
	struct seam_luajit_calibration *c = calibrating;

	if (!c->layout->at.cf_bytes)
		return 0;
	if (found.outer) {
		look_at_members(lua);
	} else {
		found.outer = seen.rsp;
		c->api->pushcclosure(lua, enter, 0);
		c->api->call(lua, 0, N_RESULTS);
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
static bool find_row(struct seam_luajit_calibration *c,
		     const struct seam_self_image *image, uint64_t addr)
{
	const struct seam_unwind_table *table = image->table;
	uint64_t offset = addr - image->bias - table->base_addr;
	size_t i = 0;

	while (i + 1 < table->n && table->starts[i + 1] <= offset)
		i++;
	if (i + 1 >= table->n || !has_rule(&table->rules, table->ids[i]))
		return seam_luajit_refuse(c, "the interpreter's call frame "
			"information is not that of LuaJIT's GC64 builds");
	c->layout->at.cf_bytes = (uint16_t)
		table->rules.rules.items[table->ids[i]].cfa_value;
	c->layout->code_start = image->bias + table->base_addr +
				table->starts[i];
	c->layout->code_end = image->bias + table->base_addr +
			      table->starts[i + 1];
	return true;
}

static bool find_code(struct seam_luajit_calibration *c)
{
	const struct seam_self_images *images =
		atomic_load(&seam_self_current);

	for (size_t i = 0; images && i < images->n; i++)
		if (seen.return_addr - images->list[i].start <
		    images->list[i].end - images->list[i].start)
			return images->list[i].table ?
			       find_row(c, &images->list[i],
					seen.return_addr - 1) :
			       seam_luajit_refuse(c, "the interpreter has no "
						  "call frame information");
	return seam_luajit_refuse(c, "the interpreter is in no image");
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

static void add_edge(struct seam_luajit *layout, size_t at, uint32_t distance)
{
	struct seam_luajit_edge *edge = &layout->edges[layout->n_edges];

	if (layout->n_edges == SEAM_LUAJIT_MAX_EDGES ||
	    (layout->n_edges && edge[-1].addr >= at))
		return;
	*edge = (struct seam_luajit_edge) { (uint32_t)at, distance };
	layout->n_edges++;
}

/* Entries follow each other; the last one is short. */
static void add_entry(struct seam_luajit *layout, size_t at)
{
	enum { ENTRY_BYTES = 128 };

	if (!layout->entry_start)
		layout->entry_start = layout->code_start + at;
	layout->entry_end = layout->code_start + at + ENTRY_BYTES;
}

static bool find_edges(struct seam_luajit_calibration *c, const uint8_t *code,
		       size_t size)
{
	struct seam_luajit *layout = c->layout;
	size_t n[SEAM_ARRAY_SIZE(patterns)] = { 0 };

	for (size_t i = 0; i + sizeof(patterns[0].bytes) < size; i++)
		for (size_t p = 0; p < SEAM_ARRAY_SIZE(patterns); p++) {
			const struct pattern *pattern = &patterns[p];

			if (memcmp(code + i, pattern->bytes, pattern->n))
				continue;
			n[p]++;
			if (p == 0)
				add_entry(layout, i);
			for (size_t s = 0; s < 7 &&
			     pattern->steps[s].distance; s++)
				add_edge(layout, i + pattern->steps[s].at,
					 pattern->steps[s].distance);
		}
	return (n[0] >= 4 && n[2] >= 1) ||
	       seam_luajit_refuse(c, "the interpreter's prologues and "
				  "epilogues are not known ones");
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
static bool find_exit(struct seam_luajit_calibration *c, const uint8_t *code,
		      size_t size)
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
		return seam_luajit_refuse(c, "the end of a trace's exit is "
					  "not a known one");
	c->layout->exit_start = c->layout->code_start + start;
	c->layout->exit_end = c->layout->code_start + end + sizeof(leaves);
	/* up to the entry of callbacks, the last prologue */
	c->layout->subroutines_end = c->layout->code_end;
	for (size_t i = 0; i < c->layout->n_edges; i++)
		if (c->layout->edges[i].bytes == FIRST_OF_CALLBACK)
			c->layout->subroutines_end = c->layout->code_start +
						     c->layout->edges[i].addr;
	return true;
}

static bool look_at_code(struct seam_luajit_calibration *c)
{
	size_t size = (size_t)(c->layout->code_end - c->layout->code_start);
	const uint8_t *code = (const uint8_t *)(uintptr_t)
			      c->layout->code_start;

	/* it is mapped: it called us */
	return size < (1 << 20) ? find_edges(c, code, size) &&
				  find_exit(c, code, size) :
	       seam_luajit_refuse(c, "the interpreter has %zu bytes of code",
				  size);
}

/*
 * L is in the frame of each thread that calls, whatever it did before: a Lua
 * function in a coroutine has had its instruction's address stored.
 */
static bool find_l(struct seam_luajit_calibration *c)
{
	static const char chunk[] = "local f = ... local t = {f} f(t) f()";
	struct seam_luajit_places places = { .n = 0 };
	struct seam_lua *other = c->api->newthread(c->lua);

	if (c->api->loadbuffer(other, chunk, sizeof(chunk) - 1, "=seam"))
		return seam_luajit_refuse(c, "a chunk does not run");
	c->api->pushcclosure(other, enter, 0);
	if (c->api->resume(other, 1) != SEAM_LUA_OK)
		return seam_luajit_refuse(c, "a coroutine does not run");
	for (size_t i = 0; i < 64; i++)
		seam_luajit_place(&places, found.l_places >> i & 1, 8 * i);
	return seam_luajit_only(c, &places, "the C frame's L",
				&c->layout->at.cf_l);
}

bool seam_luajit_calibrate_frame(struct seam_luajit_calibration *c)
{
	struct seam_luajit_offsets *at = &c->layout->at;

	calibrating = c;
	/* first the code and the frame's size, then what is in the frame */
	c->api->pushcclosure(c->lua, enter, 0);
	c->api->call(c->lua, 0, 0);
	if (!find_code(c) || !look_at_code(c))
		return false;
	memset(&found, 0, sizeof(found));
	found.l_places = (UINT64_C(1) << (at->cf_bytes - SAVED_BYTES) / 8) - 1;
	c->api->pushcclosure(c->lua, enter, 0);
	c->api->call(c->lua, 0, 0);
	at->g_dispatch = (uint16_t)(seen.dispatch - c->g);
	if (seen.dispatch - c->g >= UINT16_MAX || at->g_dispatch & 7)
		return seam_luajit_refuse(c, "r14 is not the dispatch table");
	return seam_luajit_only(c, &found.cframe, "lua_State.cframe",
				&at->l_cframe) &&
	       seam_luajit_only(c, &found.cf_prev, "the C frame's link",
				&at->cf_prev) &&
	       seam_luajit_only(c, &found.cf_nres, "the C frame's number of "
				"results", &at->cf_nres) && find_l(c);
}
