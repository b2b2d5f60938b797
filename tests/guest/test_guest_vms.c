/* SPDX-License-Identifier: MIT */
/*
 * test_guest_vms.c - virtual machines are found, proven, refused and forgotten
 *
 *	test_guest_vms LIBLUAJIT
 *
 * The library is loaded as a plugin's is: into no global scope.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/guest/guest_ids.h"
#include "target/guest/guest_vms.h"
#include "target/guest/luajit/luajit_vm.h"
#include "unwind/in_process/self_images.h"

static const char *library_path;
static void *library;
static struct seam_lua_api api;

static void *find_symbol(void *image, const char *name)
{
	return dlsym(image, name);
}

static void load(void)
{
	const char *missing;

	library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	assert_true(seam_lua_api_find(&api, find_symbol, library, &missing));
	assert_true(seam_self_refresh() >= 0);
}

static struct seam_guest_sample *new_sample(void)
{
	void *pages = mmap(NULL, sizeof(struct seam_guest_sample),
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	return pages;
}

static void free_sample(struct seam_guest_sample *sample)
{
	munmap(sample, sizeof(*sample));
}

static void take_here(struct seam_guest_sample *sample)
{
	ucontext_t context;

	getcontext(&context);
	seam_guest_take(&context, sample);
}

/* --- memory --- */

static void a_value_at_the_end_of_what_is_mapped_is_not_loaded(void **state)
{
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addr = (uint64_t)(uintptr_t)pages, value = 0;
	struct seam_guest_memory memory;

	(void)state;
	assert_true(pages != MAP_FAILED);
	mprotect(pages + 4096, 4096, PROT_NONE);
	pages[4095] = 7;
	seam_guest_memory_init(&memory);
	assert_true(seam_guest_load(&memory, addr + 4095, &value, 1));
	assert_int_equal(value, 7);
	assert_false(seam_guest_load(&memory, addr + 4092, &value, 8));
	assert_false(seam_guest_u64(&memory, addr + 4096, &value));
	assert_false(seam_guest_u64(&memory, addr + 4, &value));
	assert_true(seam_guest_u64(&memory, addr + 8192, &value));
	/* between the second page and the third one's start */
	assert_false(seam_guest_load(&memory, addr + 8190, &value, 4));
	munmap(pages, 3 * 4096);
	seam_guest_memory_init(&memory);
	assert_false(seam_guest_u64(&memory, addr, &value));
	assert_false(seam_guest_u64(&memory, UINT64_MAX & ~UINT64_C(7),
				    &value));
}

/* --- before there is one --- */

static void no_vm_no_guest_frames(void **state)
{
	struct seam_guest_sample *sample = new_sample();

	(void)state;
	assert_int_equal(seam_guest_init(), -ENOENT);
	/* symbols that were not found are no error of the program's */
	assert_null(dlerror());
	take_here(sample);
	assert_int_equal(sample->head.guest_end, SEAM_GUEST_ABSENT);
	assert_int_equal(sample->head.host_end, SEAM_STACK_COMPLETE);
	assert_int_equal(sample->head.n_segments, 0);
	assert_true(sample->stack.n > 2);
	free_sample(sample);
}

static void a_library_of_a_plugin_is_found_when_it_is_loaded(void **state)
{
	(void)state;
	load();
	if (seam_guest_refresh() != 0)
		fail_msg("%s", seam_guest_refusal());
	assert_non_null(strstr(seam_guest_vms(), "libluajit"));
	assert_string_equal(seam_guest_refusal(), "");
	/* nothing was loaded since */
	assert_int_equal(seam_guest_refresh(), 0);
}

/* --- layouts that are wrong --- */

static const struct seam_luajit *proven(void)
{
	for (size_t i = 0; i < SEAM_GUEST_MAX_VMS; i++)
		if (atomic_load(&seam_guest_slots[i].state) ==
		    SEAM_GUEST_USED)
			return seam_guest_slots[i].object;
	fail_msg("no virtual machine is in use");
	return NULL;
}

/* Prove a copy of the adapter in use in its place. */
static bool prove(const struct seam_luajit_object *object, char *reason,
		  size_t size)
{
	struct seam_guest_slot *slot = seam_guest_slots;
	void *used = slot->object;
	struct seam_luajit_object copy = *object;
	bool is_proven;

	slot->object = &copy;
	is_proven = seam_luajit_prove(&copy, reason, size);
	slot->object = used;
	return is_proven;
}

static void each_wrong_offset_is_refused_with_a_reason(void **state)
{
	struct seam_luajit_object object;
	char reason[256];
	int n_wrong = 0;

	(void)state;
	object = *(const struct seam_luajit_object *)proven();
	assert_true(prove(&object, reason, sizeof(reason)));
	for (size_t at = 0; at < sizeof(object.lj.at); at += 2)
		for (int by = -8; by <= 8; by += 4) {
			struct seam_luajit_object wrong = object;
			uint16_t *offset =
				(uint16_t *)((char *)&wrong.lj.at + at);

			if (by == 0 || *offset == 0)
				continue;
			*offset = (uint16_t)(*offset + by);
			reason[0] = '\0';
			if (prove(&wrong, reason, sizeof(reason)))
				print_error("offset %zu, %+d: not refused\n",
					    at, by), n_wrong++;
			else
				assert_true(strlen(reason) > 10);
		}
	assert_int_equal(n_wrong, 0);
}

static void code_at_the_wrong_place_is_refused(void **state)
{
	struct seam_luajit_object object;
	char reason[256];

	(void)state;
	object = *(const struct seam_luajit_object *)proven();
	object.lj.code_start += 1 << 20;
	object.lj.code_end += 1 << 20;
	assert_false(prove(&object, reason, sizeof(reason)));
	assert_non_null(strstr(reason, "not complete"));
}

/* --- other VMs --- */

static bool hide_getallocf;

static void *find_but_some(void *image, const char *name)
{
	return hide_getallocf && strcmp(name, "lua_getallocf") == 0 ?
	       NULL : dlsym(image, name);
}

static void a_library_without_all_functions_is_refused(void **state)
{
	char reason[256] = "";

	(void)state;
	hide_getallocf = true;
	assert_null(seam_luajit_vm.attach(find_but_some, library, reason,
					  sizeof(reason)));
	hide_getallocf = false;
	assert_string_equal(reason, "it does not export lua_getallocf");
}

static struct seam_lua *fail_state(void)
{
	return NULL;
}

static void *find_broken(void *image, const char *name)
{
	struct seam_lua *(*broken)(void) = fail_state;
	void *found = dlsym(image, name);

	if (strcmp(name, "luaL_newstate") == 0)
		memcpy(&found, &broken, sizeof(found));
	return found;
}

static void a_library_that_makes_no_state_is_refused(void **state)
{
	char reason[256] = "";

	(void)state;
	assert_null(seam_luajit_vm.attach(find_broken, library, reason,
					  sizeof(reason)));
	assert_string_equal(reason, "cannot make a state");
}

/* --- memory that runs out --- */

static size_t limit, n_allocations_left;

/* Of the state that was made last: LuaJIT leaks some where memory runs out. */
enum { ARENA_BYTES = 64 << 20 };

static uint8_t *arena;
static size_t n_used;

/* As the allocator of lua_newstate() is described in Lua's manual. */
static void *alloc_some(void *context, void *block, size_t old_size,
			size_t size)
{
	uint8_t *to = arena + n_used;

	(void)context;
	if (size <= old_size)
		return size ? block : NULL;
	if (n_allocations_left == 0 || size > ARENA_BYTES - n_used)
		return NULL;
	n_allocations_left--;
	n_used += (size + 15) & ~(size_t)15;
	if (block)
		memcpy(to, block, old_size);
	return to;
}

/* lua_newstate() itself, in LuaJIT 2.1, may crash where memory runs out. */
static struct seam_lua *new_limited_state(void)
{
	struct seam_lua *(*new_state)(seam_lua_alloc, void *) = NULL;
	void *found = dlsym(library, "lua_newstate");
	struct seam_lua *lua;

	memcpy(&new_state, &found, sizeof(found));
	n_used = 0;
	n_allocations_left = SIZE_MAX;
	lua = new_state(alloc_some, NULL);
	n_allocations_left = limit;
	return lua;
}

static void *find_limited(void *image, const char *name)
{
	struct seam_lua *(*limited)(void) = new_limited_state;
	void *found = dlsym(image, name);

	if (strcmp(name, "luaL_newstate") == 0)
		memcpy(&found, &limited, sizeof(found));
	return found;
}

/* An error that no lua_pcall() catches ends the process. */
static void memory_that_runs_out_is_a_refusal(void **state)
{
	struct seam_luajit_object limited;
	char reason[256] = "";
	void *object = NULL;

	(void)state;
	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(arena != MAP_FAILED);
	for (limit = 0; !object; limit += 1 + limit / 32) {
		object = seam_luajit_vm.attach(find_limited, library, reason,
					       sizeof(reason));
		assert_true(object || strlen(reason) > 10);
	}
	assert_true(limit > 100);
	seam_luajit_vm.detach(object);
	limited = *(const struct seam_luajit_object *)proven();
	limited.api.newstate = new_limited_state;
	for (limit = 0;; limit += 1 + limit / 32) {
		reason[0] = '\0';
		if (prove(&limited, reason, sizeof(reason)))
			break;
		assert_true(strlen(reason) > 10);
	}
	assert_true(limit > 100);
	munmap(arena, ARENA_BYTES);
}

/* --- several VMs, in several threads --- */

enum { THREADS = 3 };

struct thread_state {
	pthread_t thread;
	struct seam_guest_sample *sample;
	struct seam_lua *lua;
	uint64_t vm;
	uint32_t first_line;
	int number;
};

static __thread struct thread_state *own;

static int sample_own(struct seam_lua *lua)
{
	(void)lua;
	take_here(own->sample);
	own->vm = own->sample->head.vm;
	own->first_line = own->sample->n_frames ?
			  own->sample->origins[0].first_line : 0;
	return 0;
}

static void *run_thread(void *context)
{
	struct thread_state *thread = context;
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

static void each_thread_has_the_vm_that_it_runs(void **state)
{
	struct thread_state threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread_state) {
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

static void two_vms_on_one_stack_are_both_walked(void **state)
{
	struct thread_state here = { .sample = new_sample() };
	static const char chunk[] = "local f = ... \n f()";
	struct seam_lua *lua = api.newstate();

	(void)state;
	other_lua = api.newstate();
	own = &here;
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
	free_sample(here.sample);
}

static void run_chunk(struct thread_state *here, const char *chunk)
{
	struct seam_lua *lua = api.newstate();

	own = here;
	api.openlibs(lua);
	assert_int_equal(api.loadbuffer(lua, chunk, strlen(chunk), "@c.lua"),
			 0);
	api.pushcclosure(lua, sample_own, 0);
	assert_int_equal(api.pcall(lua, 1, 0, 0), 0);
	api.close(lua);
}

static void a_callback_of_the_ffi_is_an_activation(void **state)
{
	struct thread_state here = { .sample = new_sample() };
	const struct seam_guest_sample *s = here.sample;

	(void)state;
	run_chunk(&here, "local c, ffi = ..., require 'ffi'\n"
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
	assert_int_equal(seam_guest_frame_line(s->frames[s->n_frames - 1]),
			 6);
	/* qsort() is between them */
	assert_true(s->segments[0].join + 1 < s->segments[1].join);
	free_sample(here.sample);
}

/* --- names --- */

static struct seam_guest_symbol symbol_of(const struct seam_guest_sample *s,
					  size_t frame)
{
	struct seam_guest_symbol symbol;

	assert_true(frame < s->n_frames);
	assert_int_equal(seam_guest_describe(s->frames[frame].id, &symbol),
			 0);
	return symbol;
}

static void expect_name(const char *chunk, size_t frame, const char *name)
{
	struct thread_state here = { .sample = new_sample() };
	struct seam_guest_symbol symbol;

	run_chunk(&here, chunk);
	symbol = symbol_of(here.sample, frame);
	assert_int_equal(symbol.n_name, strlen(name));
	assert_memory_equal(symbol.name, name, symbol.n_name);
	if (symbol.kind == SEAM_GUEST_FRAME_GUEST) {
		assert_int_equal(symbol.n_chunk, 6);
		assert_memory_equal(symbol.chunk, "@c.lua", 6);
	}
	free_sample(here.sample);
}

static void functions_are_named_by_their_call(void **state)
{
	(void)state;
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
	struct thread_state here = { .sample = new_sample() };
	struct seam_guest_symbol symbol;
	char name[256], chunk[1024];

	memset(name, 'n', sizeof(name));
	name[length] = '\0';
	snprintf(chunk, sizeof(chunk), "local c = ...\n"
		 "local function %s() c() end %s()", name, name);
	run_chunk(&here, chunk);
	symbol = symbol_of(here.sample, 0);
	assert_int_equal(symbol.n_name, SEAM_GUEST_MAX_NAME);
	assert_int_equal(symbol.flags, flags);
	free_sample(here.sample);
}

static void a_name_is_marked_where_it_is_cut(void **state)
{
	(void)state;
	expect_long_name(SEAM_GUEST_MAX_NAME, 0);
	expect_long_name(SEAM_GUEST_MAX_NAME + 1, SEAM_GUEST_NAME_CUT);
}

static void a_name_that_is_found_later_is_announced_again(void **state)
{
	struct thread_state here = { .sample = new_sample() };
	struct seam_guest_symbol symbol;
	uint32_t id;

	(void)state;
	run_chunk(&here, "local c = ... local n = 0 "
		  "function late() c() end pcall(late)\n late()");
	id = here.sample->frames[0].id;
	symbol = symbol_of(here.sample, 0);
	assert_int_equal(symbol.n_name, 4);
	/* of the second call's sample: the chunk has been announced */
	assert_int_equal(here.sample->n_fresh, 1);
	assert_int_equal(here.sample->fresh[0], id);
	take_here(here.sample);
	assert_int_equal(here.sample->n_fresh, 0);
	free_sample(here.sample);
}

/* Called four times, from one place. */
static uint32_t n_fresh[4];
static size_t n_calls;

static int sample_and_announce(struct seam_lua *lua)
{
	const struct seam_guest_sample *s = own->sample;

	sample_own(lua);
	n_fresh[n_calls++] = (uint32_t)s->n_fresh;
	if (n_calls == 2)
		seam_guest_announce_again(s->frames[1].id);
	if (n_calls == 3)
		seam_guest_announce_all_again();
	return 0;
}

static void ids_are_announced_again_on_request(void **state)
{
	struct thread_state here = { .sample = new_sample() };
	static const char chunk[] =
		"local c = ...\n"
		"local function call() c() end\n"
		"for i = 1, 4 do call() end\n";
	struct seam_lua *lua = api.newstate();

	(void)state;
	own = &here;
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
	free_sample(here.sample);
}

/* A second name, found by another thread, would change what was announced. */
static void a_function_is_named_once(void **state)
{
	const struct seam_guest_key key = { .address = 1, .adapter = 9 };
	struct seam_guest_text text = { .line = 1 };
	struct seam_guest_symbol symbol;
	uint32_t id = seam_guest_ids_add(&key, &text);

	(void)state;
	assert_true(seam_guest_ids_is_nameless(id));
	text.n_name = 3;
	memcpy(text.name, "one", 3);
	seam_guest_ids_rename(id, &text);
	memcpy(text.name, "two", 3);
	seam_guest_ids_rename(id, &text);
	assert_false(seam_guest_ids_is_nameless(id));
	assert_int_equal(seam_guest_describe(id, &symbol), 0);
	assert_memory_equal(symbol.name, "one", 3);
}

/* The library may have been unloaded: its code is read as data is. */
static void walk_top_without_code(struct seam_guest_sample *sample,
				  enum seam_luajit_activation kind)
{
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct seam_luajit_frame frames[8];
	struct seam_luajit_stack stack = { .frames = frames, .room = 8 };
	struct seam_luajit lj = *proven();
	struct seam_guest_walk walk = { .sample = sample };
	struct seam_guest_activation a = sample->activations[0];

	assert_true(page != MAP_FAILED);
	assert_true(seam_luajit_read_thread(&lj, &walk.memory, a.thread,
					    &stack.thread));
	lj.code_start = (uint64_t)(uintptr_t)page;
	lj.code_end = lj.code_start + 4096;
	a.notes[SEAM_LUAJIT_NOTE_PC] = lj.code_start + 64;
	a.notes[SEAM_LUAJIT_NOTE_RDX] = stack.thread.base;
	a.kind = kind;
	seam_luajit_walk_top(&lj, &walk, &a, &stack);
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
	walk_top_without_code(own->sample, SEAM_LUAJIT_AT_CALL);
	/* as while the interpreter runs */
	*vmstate = ~(uint32_t)SEAM_LUAJIT_INTERP;
	walk_top_without_code(own->sample, SEAM_LUAJIT_AT_INSTRUCTION);
	*vmstate = before;
	own->number++;
	return 0;
}

static void code_that_cannot_be_read_is_not_loaded(void **state)
{
	struct thread_state here = { .sample = new_sample() };
	struct seam_lua *lua = api.newstate();

	(void)state;
	own = &here;
	api.pushcclosure(lua, walk_both, 0);
	assert_int_equal(api.pcall(lua, 0, 0, 0), 0);
	assert_int_equal(here.number, 1);
	api.close(lua);
	free_sample(here.sample);
}

/* --- depth --- */

static void a_deep_recursion_keeps_both_ends(void **state)
{
	struct thread_state here = { .sample = new_sample() };
	const struct seam_guest_sample *s = here.sample;
	uint32_t n_cut = 0;

	(void)state;
	run_chunk(&here, "local c = ...\nlocal function deep(n)\n"
		  "if n == 0 then c() return 0 end\n"
		  "return 1 + deep(n - 1) end\ndeep(6000)");
	assert_int_equal(s->head.guest_end, SEAM_GUEST_CUT);
	assert_int_equal(seam_guest_frame_line(s->frames[0]), 3);
	assert_int_equal(seam_guest_frame_line(s->frames[s->n_frames - 1]),
			 5);
	for (size_t i = 0; i < s->n_frames; i++)
		if (seam_guest_frame_kind(s->frames[i]) ==
		    SEAM_GUEST_FRAME_CUT)
			n_cut += s->frames[i].id;
	/* with the chunk, and the mark in place of those left out */
	assert_int_equal(s->n_frames - 1 + n_cut, 6002);
	free_sample(here.sample);
}

/* --- the end --- */

static void an_unloaded_library_is_forgotten(void **state)
{
	struct seam_guest_sample *sample = new_sample();

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dlclose(library), 0);
		assert_true(seam_self_refresh() >= 0);
		assert_int_equal(seam_guest_refresh(), -ENOENT);
		assert_string_equal(seam_guest_vms(), "");
		take_here(sample);
		assert_int_equal(sample->head.guest_end, SEAM_GUEST_ABSENT);
		load();
		assert_int_equal(seam_guest_refresh(), 0);
	}
	free_sample(sample);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_value_at_the_end_of_what_is_mapped_is_not_loaded),
		cmocka_unit_test(no_vm_no_guest_frames),
		cmocka_unit_test(
			a_library_of_a_plugin_is_found_when_it_is_loaded),
		cmocka_unit_test(each_wrong_offset_is_refused_with_a_reason),
		cmocka_unit_test(code_at_the_wrong_place_is_refused),
		cmocka_unit_test(a_library_without_all_functions_is_refused),
		cmocka_unit_test(a_library_that_makes_no_state_is_refused),
		cmocka_unit_test(memory_that_runs_out_is_a_refusal),
		cmocka_unit_test(each_thread_has_the_vm_that_it_runs),
		cmocka_unit_test(two_vms_on_one_stack_are_both_walked),
		cmocka_unit_test(a_callback_of_the_ffi_is_an_activation),
		cmocka_unit_test(functions_are_named_by_their_call),
		cmocka_unit_test(a_name_is_marked_where_it_is_cut),
		cmocka_unit_test(
			a_name_that_is_found_later_is_announced_again),
		cmocka_unit_test(ids_are_announced_again_on_request),
		cmocka_unit_test(a_function_is_named_once),
		cmocka_unit_test(code_that_cannot_be_read_is_not_loaded),
		cmocka_unit_test(a_deep_recursion_keeps_both_ends),
		cmocka_unit_test(an_unloaded_library_is_forgotten),
	};

	library_path = argc > 1 ? argv[1] : "libluajit-5.1.so.2";
	assert_true(seam_self_init() == 0);
	seam_self_thread_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
