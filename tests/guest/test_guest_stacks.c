/* SPDX-License-Identifier: MIT */
/*
 * test_guest_stacks.c - what a sample has of a VM's stack, and its names
 *
 *	test_guest_stacks LIBLUAJIT
 */

#include "guest_run.h"
#include "unwind/in_process/self_images.h"
#include "unit.h"

/* --- several VMs, in several threads --- */

enum { THREADS = 3 };

static void *run_thread(void *context)
{
	struct lua_thread *thread = context;
	char chunk[128];

	own = thread;
	seam_self_thread_begin();
	thread->lua = api.newstate();
	api.openlibs(thread->lua);
	snprintf(chunk, sizeof(chunk), "%.*slocal f = ...\n"
		 "local function g() f() end g()", thread->number,
		 "\n\n\n\n\n\n\n\n");
	assert_int_equal(api.loadbuffer(thread->lua, chunk, strlen(chunk),
					"=t"), 0);
	api.pushcclosure(thread->lua, sample_own, 0);
	assert_int_equal(api.pcall(thread->lua, 1, 0, 0), 0);
	return NULL;
}

UNIT_TEST(each_thread_has_the_vm_that_it_runs)
{
	struct lua_thread threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct lua_thread) {
			.sample = new_sample(), .number = i };
		assert_int_equal(pthread_create(&threads[i].thread, NULL,
						run_thread, &threads[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].thread, NULL);
		assert_int_equal(threads[i].sample->head.guest_end,
				 SEAM_GUEST_COMPLETE);
		assert_int_equal(threads[i].first_line, i + 2);
		assert_int_equal(threads[i].sample->head.vmstate,
				 SEAM_VMSTATE_CFUNC);
		for (int k = 0; k < i; k++)
			assert_true(threads[k].vm != threads[i].vm);
	}
	for (int i = 0; i < THREADS; i++) {
		api.close(threads[i].lua);
		free_sample(threads[i].sample);
	}
}

/* This thread, with a sample of its own for each test. */
static struct lua_thread here;

static int set_up(void **state)
{
	here = (struct lua_thread) { .sample = new_sample() };
	own = &here;
	return 0;
}

static int tear_down(void **state)
{
	free_sample(here.sample);
	return 0;
}

/* A VM in a C function that the other VM called: one stack, two VMs. */
static struct seam_lua *other_lua;

static int run_other(struct seam_lua *lua)
{
	static const char chunk[] = "local f = ... \n\n\n f()";

	(void)lua;
	api.loadbuffer(other_lua, chunk, sizeof(chunk) - 1, "=other");
	api.pushcclosure(other_lua, sample_own, 0);
	api.call(other_lua, 1, 0);
	return 0;
}

UNIT_TEST(two_vms_on_one_stack_are_both_walked)
{
	static const char chunk[] = "local f = ... \n f()";
	struct seam_lua *lua = api.newstate();

	other_lua = api.newstate();
	api.loadbuffer(lua, chunk, sizeof(chunk) - 1, "=chunk");
	api.pushcclosure(lua, run_other, 0);
	assert_int_equal(api.pcall(lua, 1, 0, 0), 0);
	assert_int_equal(here.sample->head.guest_end, SEAM_GUEST_COMPLETE);
	assert_int_equal(here.sample->head.n_segments, 2);
	assert_int_equal(here.sample->n_frames, 2);
	assert_int_equal(seam_guest_frame_line(here.sample->frames[0]), 4);
	assert_int_equal(seam_guest_frame_line(here.sample->frames[1]), 2);
	assert_true(here.sample->segments[0].join <
		    here.sample->segments[1].join);
	assert_true(here.sample->segments[1].thread ==
		    (uint64_t)(uintptr_t)lua);
	api.close(lua);
	api.close(other_lua);
}

UNIT_TEST(a_callback_of_the_ffi_is_an_activation)
{
	const struct seam_guest_sample *s = here.sample;

	run_chunk("local c, ffi = ..., require 'ffi'\n"
		  "ffi.cdef 'void qsort(void *, size_t, size_t,"
		  " int (*)(const void *, const void *));'\n"
		  "local two = ffi.new('int[2]', 2, 1)\n"
		  "local cb = ffi.cast('int (*)(const void *, const void *)',\n"
		  "  function(a, b) c() return 0 end)\n"
		  "ffi.C.qsort(two, 2, 4, cb)\n"
		  "cb:free()\n");
	assert_int_equal(s->head.guest_end, SEAM_GUEST_COMPLETE);
	assert_int_equal(s->head.n_segments, 2);
	assert_int_equal(s->segments[0].n_frames, 1);
	assert_int_equal(seam_guest_frame_line(s->frames[0]), 5);
	assert_true(s->segments[1].n_frames >= 1);
	assert_int_equal(seam_guest_frame_line(s->frames[s->n_frames - 1]), 6);
	/* qsort() is between them */
	assert_true(s->segments[0].join + 1 < s->segments[1].join);
}

/* --- names --- */

static struct seam_guest_symbol symbol_of(const struct seam_guest_sample *s,
					  size_t frame)
{
	struct seam_guest_symbol symbol;

	assert_true(frame < s->n_frames);
	assert_int_equal(seam_guest_describe(s->frames[frame].id, &symbol), 0);
	return symbol;
}

static void expect_name(const char *chunk, size_t frame, const char *name)
{
	struct seam_guest_symbol symbol;

	run_chunk(chunk);
	symbol = symbol_of(here.sample, frame);
	assert_int_equal(symbol.n_name, strlen(name));
	assert_memory_equal(symbol.name, name, symbol.n_name);
	if (symbol.kind == SEAM_GUEST_FRAME_GUEST) {
		assert_int_equal(symbol.n_chunk, 6);
		assert_memory_equal(symbol.chunk, "@c.lua", 6);
	}
}

UNIT_TEST(functions_are_named_by_their_call)
{
	expect_name("local c = ... function glo() c() end\n glo()", 0, "glo");
	expect_name("local c = ... local t = {} function t.fie() c() end\n"
		    "t.fie()", 0, "fie");
	expect_name("local c = ... local t = {} function t:met() c() end\n"
		    "t:met(1, {})", 0, "met");
	expect_name("local c = ... local function loc(x) c() end\n"
		    "do local a, b = 1, 2 loc(a + b) end", 0, "loc");
	expect_name("local c = ... local u, v = 1, 2\n"
		    "local function upv() c() return v end\n"
		    "local function outer() return u, (upv()) end\n"
		    "local r = outer()", 0, "upv");
	/* called from C: nobody has named it */
	expect_name("local c = ... pcall(function() c() end)", 0, "");
	/* what pcall is called by has */
	expect_name("local c = ... pcall(function() c() end)", 1, "pcall");
}

static void expect_long_name(int length, uint8_t flags)
{
	struct seam_guest_symbol symbol;
	char name[256], chunk[1024];

	memset(name, 'n', sizeof(name));
	name[length] = '\0';
	snprintf(chunk, sizeof(chunk), "local c = ...\n"
		 "local function %s() c() end %s()", name, name);
	run_chunk(chunk);
	symbol = symbol_of(here.sample, 0);
	assert_int_equal(symbol.n_name, SEAM_GUEST_MAX_NAME);
	assert_int_equal(symbol.flags, flags);
}

UNIT_TEST(a_name_is_marked_where_it_is_cut)
{
	expect_long_name(SEAM_GUEST_MAX_NAME, 0);
	expect_long_name(SEAM_GUEST_MAX_NAME + 1, SEAM_GUEST_NAME_CUT);
}

UNIT_TEST(a_name_that_is_found_later_is_announced_again)
{
	struct seam_guest_symbol symbol;
	uint32_t id;

	run_chunk("local c = ... local n = 0 "
		  "function late() c() end pcall(late)\n late()");
	id = here.sample->frames[0].id;
	symbol = symbol_of(here.sample, 0);
	assert_int_equal(symbol.n_name, 4);
	/* of the second call's sample: the chunk has been announced */
	assert_int_equal(here.sample->n_fresh, 1);
	assert_int_equal(here.sample->fresh[0], id);
	take_here(here.sample);
	assert_int_equal(here.sample->n_fresh, 0);
}

/* Called four times, from one place. */
static uint32_t n_fresh[4];
static size_t n_calls;

static int sample_and_announce(struct seam_lua *lua)
{
	const struct seam_guest_sample *s = own->sample;

	sample_own(lua);
	n_fresh[n_calls++] = (uint32_t)s->n_fresh;
	if (n_calls == 2) {
		seam_guest_announce_again(s->frames[1].id);
		seam_guest_announce_again(0);
		seam_guest_announce_again(UINT32_MAX);
	}
	if (n_calls == 3)
		seam_guest_announce_all_again();
	return 0;
}

UNIT_TEST(ids_are_announced_again_on_request)
{
	static const char chunk[] =
		"local c = ...\n"
		"local function call() c() end\n"
		"for i = 1, 4 do call() end\n";
	struct seam_lua *lua = api.newstate();

	n_calls = 0;
	assert_int_equal(api.loadbuffer(lua, chunk, strlen(chunk), "@a.lua"),
			 0);
	api.pushcclosure(lua, sample_and_announce, 0);
	assert_int_equal(api.pcall(lua, 1, 0, 0), 0);
	api.close(lua);
	assert_int_equal(n_calls, 4);
	assert_int_equal(n_fresh[0], 2);
	assert_int_equal(n_fresh[1], 0);
	assert_int_equal(n_fresh[2], 1);
	assert_int_equal(n_fresh[3], 2);
	assert_int_equal(seam_guest_describe(seam_guest_n_symbols() + 1,
					     &(struct seam_guest_symbol) {
						     .id = 0 }), -ENOENT);
}

/* The library may have been unloaded: its code is read as data is. */
static void walk_without_code(struct seam_guest_sample *sample,
			      enum seam_luajit_activation kind)
{
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct seam_guest_walk walk = { .sample = sample, .n_activations = 1 };
	struct seam_guest_activation *a = &sample->activations[0];
	struct seam_luajit_thread thread;

	assert_true(page != MAP_FAILED);
	assert_true(seam_luajit_read_thread(proven(), &walk.memory, a->thread,
					    &thread));
	a->notes[SEAM_LUAJIT_NOTE_PC] = (uint64_t)(uintptr_t)page + 64;
	a->notes[SEAM_LUAJIT_NOTE_RDX] = thread.base;
	a->kind = kind;
	sample->head.n_segments = 0;
	sample->n_frames = 0;
	seam_luajit_walk(proven(), &walk, 0);
	munmap(page, 4096);
}

static int walk_both(struct seam_lua *lua)
{
	uint32_t *vmstate, before;

	(void)lua;
	take_here(own->sample);
	vmstate = (uint32_t *)(uintptr_t)(own->sample->head.vm +
					  proven()->at.g_vmstate);
	before = *vmstate;
	walk_without_code(own->sample, SEAM_LUAJIT_AT_CALL);
	/* as while the interpreter runs */
	*vmstate = ~(uint32_t)SEAM_LUAJIT_INTERP;
	walk_without_code(own->sample, SEAM_LUAJIT_AT_INSTRUCTION);
	*vmstate = before;
	own->number++;
	return 0;
}

UNIT_TEST(code_that_cannot_be_read_is_not_loaded)
{
	struct seam_lua *lua = api.newstate();

	api.pushcclosure(lua, walk_both, 0);
	assert_int_equal(api.pcall(lua, 0, 0, 0), 0);
	assert_int_equal(here.number, 1);
	api.close(lua);
}

/* --- depth --- */

UNIT_TEST(a_deep_recursion_keeps_both_ends)
{
	const struct seam_guest_sample *s = here.sample;
	uint32_t n_cut = 0;

	run_chunk("local c = ...\nlocal function deep(n)\n"
		  "if n == 0 then c() return 0 end\n"
		  "return 1 + deep(n - 1) end\ndeep(6000)");
	assert_int_equal(s->head.guest_end, SEAM_GUEST_CUT);
	assert_int_equal(seam_guest_frame_line(s->frames[0]), 3);
	assert_int_equal(seam_guest_frame_line(s->frames[s->n_frames - 1]), 5);
	for (size_t i = 0; i < s->n_frames; i++)
		if (seam_guest_frame_kind(s->frames[i]) ==
		    SEAM_GUEST_FRAME_CUT)
			n_cut += s->frames[i].id;
	/* with the chunk, and the mark in place of those left out */
	assert_int_equal(s->n_frames - 1 + n_cut, 6002);
}

/* Call @f in @lua under @depth functions, all of them in line @line. */
static void nest(struct seam_lua *lua, int line, int depth,
		 int (*f)(struct seam_lua *))
{
	char chunk[200];

	snprintf(chunk, sizeof(chunk), "%.*slocal f = ... local function "
		 "deep(n) if n == 0 then f() return 0 end return 1 + "
		 "deep(n - 1) end deep(%d)", line - 1, "\n\n\n", depth);
	assert_int_equal(api.loadbuffer(lua, chunk, strlen(chunk), "=t"), 0);
	api.pushcclosure(lua, f, 0);
	api.call(lua, 1, 0);
}

static struct seam_lua *vms[2];

static int nest_inner(struct seam_lua *lua)
{
	nest(vms[0], 3, 10, sample_own);
	return 0;
}

static int nest_middle(struct seam_lua *lua)
{
	nest(vms[1], 2, 60, nest_inner);
	return 0;
}

/* The outer frames of the first VM are emitted after all of the second's. */
UNIT_TEST(frames_of_vms_that_call_each_other_stay_apart)
{
	static const uint32_t n_wanted[4] = { 0, 15, 60, 10 };
	const struct seam_guest_sample *s = here.sample;
	uint32_t n[4] = { 0 }, last = 3;

	vms[0] = api.newstate();
	vms[1] = api.newstate();
	nest(vms[0], 1, 15, nest_middle);
	assert_int_equal(s->head.guest_end, SEAM_GUEST_COMPLETE);
	for (size_t i = 0; i < s->n_frames; i++) {
		uint32_t line = seam_guest_frame_line(s->frames[i]);

		if (seam_guest_frame_kind(s->frames[i]) !=
		    SEAM_GUEST_FRAME_GUEST)
			continue;
		assert_in_range(line, 1, last);
		last = line;
		n[line]++;
	}
	/* with the chunk, and the call whose n is 0 */
	for (size_t i = 1; i < SEAM_ARRAY_SIZE(n); i++)
		assert_int_equal(n[i], n_wanted[i] + 2);
	api.close(vms[0]);
	api.close(vms[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	if (argc > 1)
		library_path = argv[1];
	assert_true(seam_self_init() == 0);
	seam_self_thread_begin();
	load_library();
	assert_int_equal(seam_guest_init(), 0);
	return unit_run(NULL, NULL, set_up, tear_down);
}
