/* SPDX-License-Identifier: MIT */
/*
 * test_guest_vms.c - virtual machines are found, proven, refused and forgotten
 *
 *	test_guest_vms LIBLUAJIT
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/time.h>

#include "guest_run.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"
#include "unit.h"

/* --- memory --- */

UNIT_TEST(a_value_at_the_end_of_what_is_mapped_is_not_loaded)
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

UNIT_TEST(no_vm_no_guest_frames)
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

UNIT_TEST(a_library_of_a_plugin_is_found_when_it_is_loaded)
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

UNIT_TEST(each_wrong_offset_is_refused_with_a_reason)
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
UNIT_TEST(functions_of_the_vm_have_names)
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

UNIT_TEST(code_at_the_wrong_place_is_refused)
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

UNIT_TEST(a_library_without_all_functions_is_refused)
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

UNIT_TEST(a_library_that_makes_no_state_is_refused)
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
UNIT_TEST(memory_that_runs_out_is_a_refusal)
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

/*
 * --- in many threads
 *
 * Each thread is sampled by its CPU time while it makes a state, runs
 * coroutines in it and closes it, again and again.  Another thread loads and
 * unloads a second copy of the library meanwhile, so that its adapter comes
 * and goes while handlers run.
 */

enum {
	THREADS = 3, LOADS = 12,
	/* where each read is a system call, samples take milliseconds */
	ROUNDS = SEAM_IS_SANITIZED ? 40 : 500,
	PERIOD_NS = SEAM_IS_SANITIZED ? 30000000 : 300000,
};

static _Atomic uint32_t n_samples, n_complete, n_with_vm, n_running;
static __thread struct seam_guest_sample *ticked
	__attribute__((tls_model("initial-exec")));

static void on_tick(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)signal;
	(void)info;
	if (!ticked)
		return;
	seam_guest_take(context, ticked);
	atomic_fetch_add(&n_samples, 1);
	if (ticked->head.guest_end != SEAM_GUEST_ABSENT)
		atomic_fetch_add(&n_with_vm, 1);
	if (ticked->head.guest_end <= SEAM_GUEST_CUT)
		atomic_fetch_add(&n_complete, 1);
	errno = saved_errno;
}

static void run_one_vm(void)
{
	static const char chunk[] =
		"local function f(n) if n < 2 then return n end\n"
		"  return f(n - 1) + f(n - 2) end\n"
		"for i = 1, 20 do\n"
		"  local co = coroutine.wrap(function(a)\n"
		"    a = coroutine.yield(f(12)) return f(a) end)\n"
		"  co(1) co(10)\n"
		"  table.sort({3, 1, 2}, function(a, b) return a < b end)\n"
		"end\n";
	struct seam_lua *lua = api.newstate();

	assert_non_null(lua);
	api.openlibs(lua);
	assert_true(seam_lua_run(&api, lua, chunk, "@thread.lua", 0));
	api.close(lua);
}

static void *run_thread(void *context)
{
	struct sigevent to_thread = { .sigev_notify = SIGEV_THREAD_ID,
				      .sigev_signo = SIGURG };
	const struct itimerspec each = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	timer_t timer;

	(void)context;
	seam_self_thread_begin();
	ticked = new_sample();
	to_thread._sigev_un._tid = gettid();
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &to_thread, &timer), 0);
	timer_settime(timer, 0, &each, NULL);
	for (int i = 0; i < ROUNDS; i++)
		run_one_vm();
	timer_delete(timer);
	atomic_fetch_sub(&n_running, 1);
	return NULL;
}

/* A copy of the library, which the loader takes for another one. */
static void copy_library(const char *to)
{
	void *image = dlopen(library_path, RTLD_NOW | RTLD_NOLOAD);
	Dl_info info;
	struct stat st;
	int in, out;

	assert_non_null(image);
	assert_true(dladdr(dlsym(image, "lua_close"), &info) != 0);
	in = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(in >= 0 && out >= 0 && fstat(in, &st) == 0);
	assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size),
			 st.st_size);
	close(in);
	close(out);
	dlclose(image);
}

static void come_and_go(const char *path)
{
	void *image = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!image)
		fail_msg("%s", dlerror());
	assert_true(seam_self_refresh() >= 0);
	assert_int_equal(seam_guest_refresh(), 0);
	if (count_vms("") != 2)
		fail_msg("%s", seam_guest_refusal());
	assert_int_equal(dlclose(image), 0);
	assert_true(seam_self_refresh() >= 0);
	assert_int_equal(seam_guest_refresh(), 0);
	assert_int_equal(count_vms(""), 1);
}

UNIT_TEST(vms_may_come_and_go_while_threads_are_sampled)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART };
	char path[] = "/tmp/seam-luajit-XXXXXX";
	pthread_t threads[THREADS];

	assert_true(close(mkstemp(path)) == 0);
	copy_library(path);
	action.sa_sigaction = on_tick;
	sigaction(SIGURG, &action, NULL);
	atomic_store(&n_running, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_thread,
						NULL), 0);
	for (int i = 0; i < LOADS || atomic_load(&n_running) > 0; i++)
		come_and_go(path);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	unlink(path);
	print_message("# %u samples, %u with a VM, %u complete\n",
		      atomic_load(&n_samples), atomic_load(&n_with_vm),
		      atomic_load(&n_complete));
	assert_true(atomic_load(&n_with_vm) > (SEAM_IS_SANITIZED ? 0 : 100));
	/* what is made and closed is not settled, for a moment each */
	assert_true(atomic_load(&n_complete) >=
		    atomic_load(&n_samples) * 95 / 100);
}

/* --- the end --- */

UNIT_TEST(an_unloaded_library_is_forgotten)
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
	if (argc > 1)
		library_path = argv[1];
	assert_true(seam_self_init() == 0);
	seam_self_thread_begin();
	return unit_run(NULL, NULL, NULL, NULL);
}
