/* SPDX-License-Identifier: MIT */
/*
 * test_guest_vms.c - virtual machines are found, proven, refused and forgotten
 *
 *	test_guest_vms LIBLUAJIT
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest_run.h"
#include "unwind/in_process/self_images.h"
#include "unit.h"

/* --- memory --- */

static void a_value_at_the_end_of_what_is_mapped_is_not_loaded(void **state)
{
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addr = (uint64_t)(uintptr_t)pages, value = 0;
	struct seam_guest_memory memory;

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
	load_library();
	if (seam_guest_refresh() != 0)
		fail_msg("%s", seam_guest_refusal());
	assert_int_equal(count_vms("libluajit"), 1);
	assert_string_equal(seam_guest_refusal(), "");
	/* nothing was loaded since */
	assert_int_equal(seam_guest_refresh(), 0);
}

/* --- layouts that are wrong --- */

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

/* Of callbacks alone there is no table without making one. */
static void functions_of_the_vm_have_names(void **state)
{
	static const char *const names[] = {
		"ipairs", "ipairs_aux", "coroutine.wrap", "coroutine.wrap_aux",
		"string.gmatch_aux", "string.gsub", "table.new", "table.clear",
		"jit.opt.start", "jit.util.funcinfo", "jit.profile.start",
		"io.method.read", "ffi.new", "ffi.meta.__index",
	};
	const struct seam_luajit *lj =
		&((const struct seam_luajit_object *)proven())->lj;
	size_t n = SEAM_LUAJIT_MAX_BUILTINS, n_nameless = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		size_t k = 0;

		while (k < n && strcmp(lj->builtins[k], names[i]) != 0)
			k++;
		if (k == n)
			fail_msg("no function is called %s", names[i]);
	}
	while (!lj->builtins[n - 1][0])
		n--;
	for (size_t k = 2; k < n; k++)
		if (!lj->builtins[k][0])
			print_message("# function %zu, after %s\n", k,
				      lj->builtins[k - 1]), n_nameless++;
	assert_true(n_nameless <= 2);
}

static void code_at_the_wrong_place_is_refused(void **state)
{
	struct seam_luajit_object object;
	char reason[256];

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

/* What a library has in place of luaL_newstate(). */
static struct seam_lua *(*make_state)(void);

static void *find_with_state(void *image, const char *name)
{
	void *found = dlsym(image, name);

	if (strcmp(name, "luaL_newstate") == 0)
		memcpy(&found, &make_state, sizeof(found));
	return found;
}

static void a_library_that_makes_no_state_is_refused(void **state)
{
	char reason[256] = "";

	make_state = fail_state;
	assert_null(seam_luajit_vm.attach(find_with_state, library, reason,
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

/* An error that no lua_pcall() catches ends the process. */
static void memory_that_runs_out_is_a_refusal(void **state)
{
	struct seam_luajit_object limited;
	char reason[256] = "";
	void *object = NULL;

	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(arena != MAP_FAILED);
	make_state = new_limited_state;
	for (limit = 0; !object; limit += 1 + limit / 32) {
		object = seam_luajit_vm.attach(find_with_state, library,
					       reason, sizeof(reason));
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

/* --- the end --- */

static void an_unloaded_library_is_forgotten(void **state)
{
	struct seam_guest_sample *sample = new_sample();

	for (int i = 0; i < 3; i++) {
		assert_int_equal(dlclose(library), 0);
		assert_true(seam_self_refresh() >= 0);
		assert_int_equal(seam_guest_refresh(), -ENOENT);
		assert_int_equal(count_vms(""), 0);
		take_here(sample);
		assert_int_equal(sample->head.guest_end, SEAM_GUEST_ABSENT);
		load_library();
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
		cmocka_unit_test(functions_of_the_vm_have_names),
		cmocka_unit_test(code_at_the_wrong_place_is_refused),
		cmocka_unit_test(a_library_without_all_functions_is_refused),
		cmocka_unit_test(a_library_that_makes_no_state_is_refused),
		cmocka_unit_test(memory_that_runs_out_is_a_refusal),
		cmocka_unit_test(an_unloaded_library_is_forgotten),
	};

	if (argc > 1)
		library_path = argv[1];
	assert_true(seam_self_init() == 0);
	seam_self_thread_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
