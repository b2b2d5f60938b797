/* SPDX-License-Identifier: MIT */
/*
 * test_guest_threads.c - samples of threads that make, run and close VMs
 *
 *	test_guest_threads LIBLUAJIT
 *
 * Each thread is sampled by its CPU time while it makes a state, runs
 * coroutines in it and closes it, again and again.  Another thread loads and
 * unloads a second copy of the library meanwhile, so that its adapter comes
 * and goes while handlers run.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "guest_run.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"
#include "unit.h"

enum {
	THREADS = 3, LOADS = 12,
	/* where each read is a system call, samples take milliseconds */
	ROUNDS = SEAM_IS_SANITIZED ? 40 : 500,
	PERIOD_NS = SEAM_IS_SANITIZED ? 30000000 : 300000,
};

static _Atomic uint32_t n_samples, n_complete, n_with_vm, n_running;
static __thread struct seam_guest_sample *sample
	__attribute__((tls_model("initial-exec")));

static void on_tick(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)signal;
	(void)info;
	if (!sample)
		return;
	seam_guest_take(context, sample);
	atomic_fetch_add(&n_samples, 1);
	if (sample->head.guest_end != SEAM_GUEST_ABSENT)
		atomic_fetch_add(&n_with_vm, 1);
	if (sample->head.guest_end <= SEAM_GUEST_CUT)
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
	sample = new_sample();
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

static void vms_may_come_and_go_while_threads_are_sampled(void **state)
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			vms_may_come_and_go_while_threads_are_sampled),
	};

	if (argc > 1)
		library_path = argv[1];
	if (seam_self_init() < 0)
		return 1;
	load_library();
	if (seam_guest_init() < 0) {
		fprintf(stderr, "no LuaJIT: %s\n", seam_guest_refusal());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
