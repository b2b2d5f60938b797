/* SPDX-License-Identifier: MIT */
/* test_sysprof_stacks.c - names, joints and order of a sysprof stream */
#include "model/sysprof/load_sysprof.h"

#include "../sysprof_made.h"
#include "unit.h"

/* Functions of 0x100 bytes; the VM has symbols, from 0x5000 on. */
static const struct { uint64_t addr; const char *name; } symbols[] = {
	{ 0x1000, "main" }, { 0x1100, "lua_pcall" }, { 0x1200, "lua_cpcall" },
	{ 0x1300, "lua_call" }, { 0x1400, "l_apply" }, { 0x1500, "l_fib" },
	{ 0x1600, "fib" }, { 0x1700, "pmain" }, { 0x1800, "helper" },
	{ 0x5000, "lj_vm_call" }, { 0x5100, "lj_BC_CALL" },
	{ 0x5200, "lj_BC_FUNCC" }, { 0x5300, "lj_ff_coroutine_resume" },
	{ 0x5400, "lj_vm_floor" }, { 0x5500, "end" },
};

static struct seam_sysprof_buffer b;	/* the stream that is being made */
static struct seam_profile p;		/* what load_as() made of it */

static int tear_down(void **state)
{
	seam_profile_fini(&p);
	p = (struct seam_profile) { 0 };
	return 0;
}

static void begin(bool with_vm)
{
	b = made_begin();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(symbols); i++)
		if (with_vm || symbols[i].addr < 0x5000)
			made_cfunc(&b, symbols[i].addr, symbols[i].name, false);
	made_lfunc(&b, 0x10, "@a.lua", 0, false);
	made_lfunc(&b, 0x20, "@a.lua", 10, false);
	made_lfunc(&b, 0x30, "@b.lua", 20, false);
	made_trace(&b, 3, 0x20, 12, false);
}

/* Each sample counts once, for the only event. */
static void expect_event(void)
{
	assert_int_equal(p.events.n, 1);
	assert_string_equal(seam_profile_text(&p, p.events.items[0].name),
			    "sysprof");
	assert_int_equal(p.events.items[0].unit, SEAM_UNIT_COUNT);
	assert_int_equal(p.events.items[0].n_samples, p.samples.n);
	assert_int_equal(p.events.items[0].n_lost, 0);
	for (size_t i = 0; i < p.samples.n; i++) {
		assert_int_equal(p.samples.event[i], 0);
		assert_int_equal(seam_samples_weight(&p.samples, i), 1);
		assert_int_equal(seam_samples_count(&p.samples, i), 1);
	}
}

static void load_as(bool as_parser)
{
	struct seam_file file;
	struct seam_err err = { 0 };

	made_end(&b);
	file = made_file(&b);
	tear_down(NULL);
	assert_int_equal(seam_profile_init(&p), 0);
	if (seam_load_sysprof(&p, &file, as_parser, &err))
		fail_msg("%s", err.cause[0]);
	expect_event();
}

/* The names of sample @i, from the root, with semicolons. */
static const char *stack_of(size_t i)
{
	static char text[4096];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	for (uint32_t s = p.samples.stack[i]; s;
	     s = p.stacks.items[s].parent) {
		const char *name = seam_profile_text(&p,
					seam_profile_leaf(&p, s)->name);
		size_t n = strlen(name);

		if (at < sizeof(text) - 1)
			text[--at] = ';';
		assert_true(n < at);
		memcpy(text + (at -= n), name, n);
	}
	return text + at;
}

/* The stack of one sample. */
static void check_as(bool with_vm, bool as_parser, const char *lua,
		     const char *host, const char *expected)
{
	begin(with_vm);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_LFUNC, lua, host);
	load_as(as_parser);
	assert_int_equal(p.samples.n, 1);
	assert_string_equal(stack_of(0), expected);
}

static void check(const char *lua, const char *host, const char *expected)
{
	check_as(true, false, lua, host, expected);
}

/* The same, with a function @name at 0x6000. */
static void check_named(const char *name, const char *lua, const char *host,
			const char *expected)
{
	begin(true);
	made_cfunc(&b, 0x6000, name, false);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_LFUNC, lua, host);
	load_as(false);
	assert_string_equal(stack_of(0), expected);
}

/* -- joints -------------------------------------------------------------- */

UNIT_TEST(lua_frames_are_between_the_caller_of_the_vm_and_the_vm)
{
	check("L20:10 L10:0", "5120 1120 1020",
	      "main;lua_pcall;a.lua:0;a.lua:10;lj_BC_CALL");
	/* the VM may call functions of its own, and has more than one frame */
	check("L20:10 L10:0", "1820 5120 5020 1120 1020",
	      "main;lua_pcall;a.lua:0;a.lua:10;lj_vm_call;lj_BC_CALL;helper");
	/* a function that the VM's code has for others is none of its frames */
	check("L20:10 L10:0", "5420 1820 5120 1120 1020", "main;lua_pcall;"
	      "a.lua:0;a.lua:10;lj_BC_CALL;helper;lj_vm_floor");
}

UNIT_TEST(a_c_function_joins_both_stacks)
{
	/* lua_cpcall: pmain is the outermost Lua frame */
	check("L20:10 L10:0 C1700", "5120 1120 1720 5220 1220 1020",
	      "main;lua_cpcall;lj_BC_FUNCC;pmain;lua_pcall;a.lua:0;a.lua:10;"
	      "lj_BC_CALL");
	/* l_apply ends with lua_call, which is a jump there */
	check("L30:20 C1400 L20:10 L10:0", "5120 1420 5220 1120 1020",
	      "main;lua_pcall;a.lua:0;a.lua:10;lj_BC_FUNCC;l_apply;b.lua:20;"
	      "lj_BC_CALL");
	/* the sample is in a C function, which calls itself */
	check("C1500 L10:0", "1520 1540 1540 5220 1120 1020",
	      "main;lua_pcall;a.lua:0;lj_BC_FUNCC;l_fib;l_fib;l_fib");
	check("C1500 L10:0 C1400 L20:10",
	      "1620 1620 1540 5220 1320 1440 5220 1120",
	      "lua_pcall;a.lua:10;lj_BC_FUNCC;l_apply;lua_call;a.lua:0;"
	      "lj_BC_FUNCC;l_fib;fib;fib");
}

UNIT_TEST(code_of_the_vm_is_known_by_its_name)
{
	static const char *const names[] = {
		"lj_vm_ffi_callback", "lj_cont_cat", "lj_ff_assert",
	};
	char expected[100];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		snprintf(expected, sizeof(expected),
			 "main;a.lua:10;%s;helper", names[i]);
		check_named(names[i], "L20:10", "1820 6020 1020", expected);
	}
	/* it calls others, and returns */
	check_named("lj_vm_ffi_call", "L20:10", "1820 6020 1020",
		    "main;lj_vm_ffi_call;helper;a.lua:10");
}

UNIT_TEST(the_outermost_frame_of_the_host_may_be_a_joint)
{
	begin(false);
	made_profile(&b);
	/* what is outside of it in one sample is not so in the next */
	made_sample(&b, SEAM_VMSTATE_CFUNC, "", "1820 1540");
	made_sample(&b, SEAM_VMSTATE_CFUNC, "C1500 L10:0", "1540");
	load_as(false);
	assert_string_equal(stack_of(1), "a.lua:0;l_fib");
}

UNIT_TEST(bytes_after_the_end_are_a_loss)
{
	begin(true);
	made_profile(&b);
	made_end(&b);
	load_as(false);
	assert_int_equal(p.losses.n, 1);
	assert_int_equal(p.losses.items[0].bytes, 1);
	assert_int_equal(p.notes.n, 1);
}

UNIT_TEST(a_c_function_that_the_host_does_not_show_is_a_frame)
{
	check("L30:20 C1400 L10:0", "5120 1120",
	      "lua_pcall;a.lua:0;l_apply;b.lua:20;lj_BC_CALL");
	check("L30:20 C1400 L10:0", "", "a.lua:0;l_apply;b.lua:20");
}

UNIT_TEST(a_coroutine_is_inside_of_the_frames_that_resumed_it)
{
	/* the Lua stack has the coroutine alone, neither chunk nor pmain */
	check("L20:10", "5120 5320 1120 1720 5220 1220",
	      "lua_cpcall;lj_BC_FUNCC;pmain;lua_pcall;lj_ff_coroutine_resume;"
	      "a.lua:10;lj_BC_CALL");
	check("L30:20 C1400 L20:10", "5120 1440 5220 5320 1120",
	      "lua_pcall;lj_ff_coroutine_resume;a.lua:10;lj_BC_FUNCC;l_apply;"
	      "b.lua:20;lj_BC_CALL");
	/* it is about to resume another */
	check("L20:10", "5320 5320 1120", "lua_pcall;lj_ff_coroutine_resume;"
	      "a.lua:10;lj_ff_coroutine_resume");
	check_named("lj_ff_coroutine_wrap_aux", "L20:10", "6020 6020 1120",
		    "lua_pcall;lj_ff_coroutine_wrap_aux;a.lua:10;"
		    "lj_ff_coroutine_wrap_aux");
	/* resumed by C, of a VM without symbols */
	check_named("lua_resume", "L20:10", "1820 6020 1020",
		    "main;lua_resume;a.lua:10;helper");
}

UNIT_TEST(a_vm_without_symbols_is_the_caller_of_joints)
{
	/* its code is at 0x9000, which is far from any symbol */
	check_as(false, false, "L30:20 C1400 L20:10 L10:0",
		 "29120 1320 1440 29120 1120 1020",
		 "main;lua_pcall;a.lua:0;a.lua:10;[helper+0x27920];l_apply;"
		 "lua_call;b.lua:20;[helper+0x27920]");
	check_as(false, false, "L20:10 L10:0", "29120 1120 1020",
		 "main;lua_pcall;a.lua:0;a.lua:10;[helper+0x27920]");
	check_as(false, false, "C1500 L20:10 C1400 L10:0",
		 "1540 29120 1440 29120 1120", "lua_pcall;a.lua:0;"
		 "[helper+0x27920];l_apply;a.lua:10;[helper+0x27920];l_fib");
	check_as(false, false, "L20:10 L10:0", "29120 1020",
		 "main;[helper+0x27920];a.lua:0;a.lua:10");
}

/* As a writer of ours names a stripped VM: all of its assembly code at once. */
UNIT_TEST(a_vm_with_one_symbol_is_a_vm)
{
	begin(false);
	made_cfunc(&b, 0x5000, "lj_vm_asm_begin", false);
	made_cfunc(&b, 0x9000, "luajit", false);
	made_profile(&b);
	/* l_fast has no symbol of its own, and no joint */
	made_sample(&b, SEAM_VMSTATE_CFUNC, "F171 L10:0",
		    "1620 1620 9020 5120 1120");
	load_as(false);
	assert_string_equal(stack_of(0), "lua_pcall;a.lua:0;ffid 171;"
			    "lj_vm_asm_begin;luajit;fib;fib");
}

UNIT_TEST(without_a_host_stack_the_lua_stack_is_all)
{
	check("L20:10 L10:0", "", "a.lua:0;a.lua:10");
	check_as(true, true, "L20:10 L10:0", "", "a.lua:0;a.lua:10");
	check("", "", "");
	/* nor does one that ends in the VM's code */
	check("L20:10 L10:0", "5420", "a.lua:0;a.lua:10;lj_vm_floor");
	check("L20:10 L10:0", "1020", "main;a.lua:0;a.lua:10");
}

/* -- fast functions ------------------------------------------------------- */

static void put_fast(struct seam_sysprof_buffer *b)
{
	static const char *const names[] = {
		"lj_ff_assert", "lj_cf_select", "lj_ff_tostring",
		"lj_cf_print", "lj_ff_string_byte", "lj_cf_string_format",
		"lj_cf_table_concat", "lj_cf_table_sort", "lj_cf_os_clock",
		"lj_cf_package_loadlib",
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		made_cfunc(b, 0x2000 + 0x100 * i, names[i], false);
}

UNIT_TEST(a_fast_function_has_the_number_of_its_place)
{
	begin(true);
	put_fast(&b);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F2 L10:0", "5120 1120");
	/* table.sort is in C, and calls back */
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L30:20 F10 L10:0",
		    "5120 1820 2720 5220 1120");
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F11", "");
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F12", "");
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F0", "");
	load_as(false);
	assert_string_equal(stack_of(0),
			    "lua_pcall;a.lua:0;assert;lj_BC_CALL");
	assert_string_equal(stack_of(1), "lua_pcall;a.lua:0;table.sort;"
			    "lj_BC_FUNCC;lj_cf_table_sort;helper;b.lua:20;"
			    "lj_BC_CALL");
	assert_string_equal(stack_of(2), "os.clock");
	assert_string_equal(stack_of(3), "ffid 12");
	assert_string_equal(stack_of(4), "ffid 0");
}

UNIT_TEST(an_unknown_function_makes_all_numbers_unknown)
{
	begin(true);
	put_fast(&b);
	made_cfunc(&b, 0x4000, "lj_cf_table_novel", false);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F2", "");
	load_as(false);
	assert_string_equal(stack_of(0), "ffid 2");

	begin(true);		/* and so do symbols that are missing */
	made_cfunc(&b, 0x4000, "lj_ff_assert", false);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F2", "");
	load_as(false);
	assert_string_equal(stack_of(0), "ffid 2");
}

/* -- traces and states ---------------------------------------------------- */

UNIT_TEST(a_trace_is_a_frame_of_the_function_in_which_it_starts)
{
	begin(true);
	made_profile(&b);
	made_trace_sample(&b, 3, 0x20, 10);
	made_trace_sample(&b, 4, 0x30, 20);	/* no symbol of the trace */
	made_trace_sample(&b, 4, 0x990, 5);	/* nor of the prototype */
	made_sample(&b, SEAM_VMSTATE_INTERP, "", "5120 1120");
	made_sample(&b, SEAM_VMSTATE_GC, "", "");
	load_as(false);
	assert_string_equal(stack_of(0),
			    "a.lua:10;TRACE [3] started at a.lua:12");
	assert_string_equal(stack_of(1),
			    "b.lua:20;TRACE [4] started at b.lua:20");
	assert_non_null(strstr(stack_of(2), "[prototype 0x990]:5;TRACE [4]"
			       ));
	assert_string_equal(stack_of(3), "lua_pcall;lj_BC_CALL");
	assert_string_equal(stack_of(4), "");
	assert_int_equal(p.samples.vmstate[0], SEAM_VMSTATE_TRACE);
	assert_int_equal(p.samples.vmstate[3], SEAM_VMSTATE_INTERP);
	assert_int_equal(p.samples.vmstate[4], SEAM_VMSTATE_GC);
	assert_int_equal(seam_profile_leaf(&p, p.samples.stack[0])->layer,
			 SEAM_LAYER_JIT);
}

/* -- order --------------------------------------------------------------- */

UNIT_TEST(a_name_is_that_of_its_time)
{
	begin(true);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L20:10 L40:7", "5120 1120 9020");
	/* 0x20 was collected, and another is at its address now */
	made_lfunc(&b, 0x20, "@new.lua", 10, true);
	made_lfunc(&b, 0x40, "text\nmore", 7, true);
	made_cfunc(&b, 0x9000, "late", true);
	made_trace(&b, 3, 0x20, 99, true);
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L20:10 L40:7", "5120 1120 9020");
	made_trace_sample(&b, 3, 0x20, 10);
	made_lfunc(&b, 0x20, "@a.lua", 10, true);
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L20:10 L40:7", "5120 1120 9020");
	load_as(false);
	assert_string_equal(stack_of(0), "end;lua_pcall;"
			    "[prototype 0x40]:7;a.lua:10;lj_BC_CALL");
	assert_string_equal(stack_of(1), "late;lua_pcall;"
			    "[string \"text...\"]:7;new.lua:10;lj_BC_CALL");
	assert_string_equal(stack_of(2),
			    "new.lua:10;TRACE [3] started at new.lua:99");
	assert_string_equal(stack_of(3), "late;lua_pcall;"
			    "[string \"text...\"]:7;a.lua:10;lj_BC_CALL");
}

/* Each kind of symbol alone makes what was found before outdated. */
UNIT_TEST(a_late_symbol_of_any_kind_counts_from_there_on)
{
	begin(true);
	made_profile(&b);
	for (int i = 0; i < 4; i++) {
		made_trace_sample(&b, 3, 0x20, 10);
		made_sample(&b, SEAM_VMSTATE_LFUNC, "L50:1", "5120 5580");
		if (i == 0)
			made_trace(&b, 3, 0x20, 98, true);
		else if (i == 1)
			made_cfunc(&b, 0x5560, "late", true);
		else
			made_lfunc(&b, 0x50, "@late.lua", 1, true);
	}
	load_as(false);
	assert_non_null(strstr(stack_of(0), "started at a.lua:12"));
	assert_non_null(strstr(stack_of(2), "started at a.lua:98"));
	assert_string_equal(stack_of(3),
			    "end;[prototype 0x50]:1;lj_BC_CALL");
	assert_string_equal(stack_of(5),
			    "late;[prototype 0x50]:1;lj_BC_CALL");
	assert_string_equal(stack_of(7), "late;late.lua:1;lj_BC_CALL");
}

UNIT_TEST(samples_that_differ_in_their_leaf_alone_are_distinct)
{
	uint32_t s[2];

	begin(true);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L10:0", "1020");
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L10:0", "1030");
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L10:0", "5120 1020");
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L10:0", "7f 1020");
	load_as(false);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(stack_of((size_t)i), "main;a.lua:0");
		s[i] = p.stacks.items[p.samples.stack[i]].parent;
	}
	assert_int_equal(p.frames.items[p.stacks.items[s[0]].frame].addr,
			 0x1020);
	assert_int_equal(p.frames.items[p.stacks.items[s[1]].frame].addr,
			 0x1030);
	assert_string_equal(stack_of(2), "main;a.lua:0;lj_BC_CALL");
	assert_string_equal(stack_of(3), "main;[unknown+0x7f];a.lua:0");
}

UNIT_TEST(an_address_far_after_a_symbol_has_no_name)
{
	check("", "15500 1020", "main;end");		/* 64 KiB */
	check("", "15501 1020", "main;[end+0x10001]");
	check("", "5500 500", "[unknown+0x500];end");
	/* a call may be the last instruction of its function */
	check("", "1600 1100", "main;fib");
	check_as(true, true, "", "1600 1100", "lua_pcall;fib");
	check_as(true, true, "", "15501 1020", "main;end");
}

UNIT_TEST(an_address_without_a_name_is_counted_once)
{
	const char *note;

	begin(true);
	made_profile(&b);
	for (uint64_t i = 0; i < 3; i++) {
		made_sample(&b, SEAM_VMSTATE_GC, "", "15501 15601 1020");
		made_lfunc(&b, 0x40 + i, "@c.lua", i, true);
	}
	load_as(false);
	assert_int_equal(p.notes.n, 1);
	note = seam_profile_text(&p, p.notes.items[0]);
	if (strncmp(note, "2 addresses are more than 64 KiB", 32) != 0)
		fail_msg("%s", note);
}

UNIT_TEST(a_stack_of_one_frame_is_not_one_of_none)
{
	begin(true);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_INTERP, "", "7f");
	made_sample(&b, SEAM_VMSTATE_INTERP, "", "");
	made_sample(&b, SEAM_VMSTATE_INTERP, "", "7e");
	load_as(false);
	assert_string_equal(stack_of(0), "[unknown+0x7f]");
	assert_string_equal(stack_of(1), "");
	assert_string_equal(stack_of(2), "[unknown+0x7e]");
}

/* -- as LuaJIT's parser --------------------------------------------------- */

UNIT_TEST(frames_that_the_parser_leaves_out_are_counted)
{
	const char *note;

	begin(true);
	made_profile(&b);
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L30:20 L20:10 C1400 L10:0",
		    "5120 1440 5220 1120");
	load_as(true);
	assert_string_equal(stack_of(0),
			    "lua_pcall;a.lua:0;lj_BC_FUNCC;l_apply;lj_BC_CALL");
	assert_int_equal(p.notes.n, 1);
	note = seam_profile_text(&p, p.notes.items[0]);
	if (strncmp(note, "2 Lua frames of inner calls", 27) != 0)
		fail_msg("%s", note);
}

UNIT_TEST(luajit_s_parser_inserts_lua_frames_at_calls)
{
	check_as(true, true, "L30:20 C1400 L10:0", "5120 1320 1440 5220 1120",
		 "lua_pcall;a.lua:0;lj_BC_FUNCC;l_apply;lua_call;a.lua:0;"
		 "b.lua:20;lj_BC_CALL");
	/* at a second call, all but the innermost are repeated */
	check_as(true, true, "L20:10 L10:0", "5120 1320 1120",
		 "lua_pcall;a.lua:0;a.lua:10;lua_call;a.lua:0;lj_BC_CALL");
	/* those of inner calls are lost without a call */
	check_as(true, true, "L30:20 C1400 L10:0", "5120 1440 5220 1120",
		 "lua_pcall;a.lua:0;lj_BC_FUNCC;l_apply;lj_BC_CALL");
	check_as(true, true, "L20:10 C1700", "5120 1120 1720 5220 1220",
		 "lua_cpcall;lj_BC_FUNCC;pmain;lua_pcall;a.lua:10;lj_BC_CALL");
}

/* -- two ways to the same ------------------------------------------------- */

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 20) % below;
}

static void put_random(struct seam_sysprof_buffer *b)
{
	char lua[200] = "", host[200] = "";
	size_t n = 0;

	for (uint64_t i = next_random(5); i > 0; i--)
		n += (size_t)snprintf(lua + n, sizeof(lua) - n, "%s%c%x%s",
			n ? " " : "", "LCF"[next_random(3)],
			next_random(2) ? 0x10 * (int)(1 + next_random(4)) :
			0x1000 + 0x100 * (int)next_random(9), ":1");
	n = 0;
	for (uint64_t i = next_random(8); i > 0; i--)
		n += (size_t)snprintf(host + n, sizeof(host) - n, "%s%x",
			n ? " " : "", (next_random(2) ? 0x5000 : 0x1000) +
			0x100 * (int)next_random(6) + (int)next_random(3));
	made_sample(b, SEAM_VMSTATE_LFUNC, lua, host);
}

/* Each sample of the stream joined by itself, beside the loaded ones. */
static void compare(struct seam_bytes bytes, const struct seam_profile *loaded,
		    bool as_parser)
{
	struct seam_profile p;
	struct seam_sysprof_names names = {
		.profile = &p, .as_parser = as_parser,
	};
	struct seam_joined_stack joined = { 0 };
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item;
	size_t n = 0;

	assert_int_equal(seam_profile_init(&p), 0);
	seam_sysprof_begin(&reader, bytes);
	while (seam_sysprof_next(&reader, &item, NULL) > 0) {
		uint32_t s;

		if (item.kind != SEAM_SYSPROF_SAMPLE) {
			assert_int_equal(seam_sysprof_names_add(&names, &item),
					 0);
			continue;
		}
		assert_int_equal(seam_joined_stack_make(&joined, &names, &item,
							2), 0);
		s = loaded->samples.stack[n++];
		for (size_t i = 0; i < joined.frames.n;
		     i++, s = loaded->stacks.items[s].parent) {
			assert_int_not_equal(s, 0);
			assert_string_equal(seam_profile_text(loaded,
					seam_profile_leaf(loaded, s)->name),
				seam_profile_text(&p, seam_profile_function_of(
					&p, joined.frames.items[i])->name));
		}
		assert_int_equal(s, 0);
	}
	assert_int_equal(n, loaded->samples.n);
	seam_sysprof_fini(&reader);
	seam_joined_stack_fini(&joined);
	seam_sysprof_names_fini(&names);
	seam_profile_fini(&p);
}

/* Samples share what they have in common, and are as if joined alone. */
UNIT_TEST(samples_are_as_if_each_was_the_only_one)
{
	for (int i = 0; i < 40; i++) {
		begin(true);
		put_fast(&b);
		made_profile(&b);
		for (int k = 0; k < 400; k++) {
			put_random(&b);
			if (next_random(50) == 0)
				made_lfunc(&b, 0x10 * next_random(5), "@c.lua",
					   next_random(3), true);
			if (next_random(50) == 0)
				made_cfunc(&b, 0x1000 + 0x80 *
					   next_random(20), next_random(2) ?
					   "l_other" : "lj_BC_OTHER", true);
		}
		load_as(i % 2);
		compare(p.sysprof->file.bytes, &p, i % 2);
	}
}

static void add_c_function(struct seam_sysprof_names *names, uint64_t addr,
			   const char *name)
{
	const struct seam_sysprof_item item = {
		.kind = SEAM_SYSPROF_SYMBOL_CFUNC,
		.cfunc = { addr, { (const uint8_t *)name, 1 } } };

	assert_int_equal(seam_sysprof_names_add(names, &item), 0);
}

UNIT_TEST(c_functions_are_found_as_in_a_plain_list)
{
	static const char letters[] = "abc";

	for (int round = 0; round < 30; round++) {
		struct seam_profile p;
		struct seam_sysprof_names names = { .profile = &p };
		struct { uint64_t addr; const char *name; } list[300];

		assert_int_equal(seam_profile_init(&p), 0);
		for (size_t n = 0; n < 300;) {
			uint64_t addr = next_random(400) * 4;
			struct seam_sysprof_place found;
			size_t best = 300;

			list[n].addr = addr;
			list[n++].name = &letters[next_random(3)];
			add_c_function(&names, addr, list[n - 1].name);
			addr = next_random(1800);
			for (size_t k = 0; k < n; k++)
				if (list[k].addr <= addr && (best == 300 ||
				    list[k].addr >= list[best].addr))
					best = k;
			found = seam_sysprof_names_host(&names, addr, true);
			assert_int_equal(!found.symbol, best == 300);
			if (best == 300)
				continue;
			assert_int_equal(found.function, list[best].addr);
			assert_int_equal(seam_profile_text(&p,
						found.symbol)[0],
					 list[best].name[0]);
		}
		assert_true(names.c_functions.runs.n <= 10);
		seam_sysprof_names_fini(&names);
		seam_profile_fini(&p);
	}
}

UNIT_MAIN(NULL, NULL, NULL, tear_down)
