/* SPDX-License-Identifier: MIT */
/*
 * test_sysprof_c_ends.c - ends of runs: by other threads, in children, at once
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include <lauxlib.h>

#include "sysprof_run.h"
#include "traced/sampler/tick.h"
#include "unit.h"

/* ---- moments between the profiler's steps ---- */

static void (*on_tick_start)(void);	/* in start, when ticks come */
static atomic_int held_tid;		/* its handler is held at the entry */
static atomic_bool is_held;

int __real_seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
			   uint64_t period_ns);
int __wrap_seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
			   uint64_t period_ns);
long __real_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
		    long f);

int __wrap_seam_tick_start(struct seam_tick *tick, int32_t tid, int signal,
			   uint64_t period_ns)
{
	int r = __real_seam_tick_start(tick, tid, signal, period_ns);

	if (on_tick_start)
		on_tick_start();
	return r;
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long r = __real_syscall(number, a, b, c, d, e, f);

	while (number == SYS_gettid && r == held_tid)
		is_held = true;
	return r;
}

/* ---- ends ---- */

UNIT_TEST(closing_the_vm_stops_it)
{
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(3);
	lua_close(L);
	assert_int_equal(seen.n_stopped, 1);
	assert_true(count_stream().is_whole);
	assert_int_equal(count_stream().n_samples, n_samples());
	L = luaL_newstate();
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
}

UNIT_TEST(closing_a_vm_does_not_stop_a_run_of_another)
{
	lua_State *first = luaL_newstate(), *second = L;

	L = first;
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	assert_int_equal(luaM_sysprof_stop(first), 0);
	L = second;
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	lua_close(first);
	sample(2);
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

static void *stop_it(void *result)
{
	*(int *)result = luaM_sysprof_stop(L);
	return NULL;
}

static void *start_it(void *result)
{
	*(int *)result = start(LUAM_SYSPROF_CALLGRAPH);
	return NULL;
}

static int in_a_thread(void *(*work)(void *result))
{
	pthread_t thread;
	int result = -1;

	assert_int_equal(pthread_create(&thread, NULL, work, &result), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return result;
}

static atomic_bool is_over;

/* Samples all the time, while another thread starts and stops. */
static void *be_stopped(void *status)
{
	*(int *)status = start(LUAM_SYSPROF_CALLGRAPH);
	while (!is_over)
		;
	return NULL;
}

UNIT_TEST(another_thread_may_stop_it)
{
	int status = -1;
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		seen.n = 0;
		is_over = false;
		made_up_guest.n_taken = 0;
		assert_int_equal(pthread_create(&thread, NULL, be_stopped,
						&status), 0);
		while (*(volatile uint64_t *)&made_up_guest.n_taken < 3)
			;
		assert_int_equal(luaM_sysprof_stop(L), 0);
		assert_true(count_stream().is_whole);
		is_over = true;
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(status, 0);
	}
	/* and it may be the sampled thread's own successor */
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	assert_int_equal(in_a_thread(stop_it), 0);
	assert_int_equal(seen.n_stopped, 21);
}

static void call_early(void)
{
	struct luam_sysprof_counters counters;

	on_tick_start = NULL;
	assert_int_equal(in_a_thread(stop_it), PROFILE_ERRRUN);
	assert_int_equal(in_a_thread(start_it), PROFILE_ERRRUN);
	assert_int_equal(luaM_sysprof_report(&counters), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_set_backtracer(NULL), PROFILE_ERRUSE);
}

UNIT_TEST(calls_during_a_start_fail)
{
	on_tick_start = call_early;
	run(LUAM_SYSPROF_CALLGRAPH, 2);
	assert_true(count_stream().is_whole);
}

static atomic_int sampled_tid;

static void note_sampled_thread(void)
{
	sampled_tid = gettid();
}

/* Its handler is held before it counts as running. */
static void *be_stopped_in_handler(void *status)
{
	*(int *)status = start(LUAM_SYSPROF_CALLGRAPH);
	held_tid = gettid();
	while (!is_over)
		;
	return NULL;
}

UNIT_TEST(a_handler_of_the_last_run_takes_no_sample_of_the_next)
{
	sigset_t urgent, before;
	pthread_t thread;
	int status = -1;

	is_over = is_held = false;
	assert_int_equal(pthread_create(&thread, NULL, be_stopped_in_handler,
					&status), 0);
	while (!is_held)
		;
	assert_int_equal(status, 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	/* ticks of this thread are due, and no handler of it takes them */
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &urgent, &before), 0);
	seen.n = 0;
	sampled_tid = 0;
	made_up_guest.on_take = note_sampled_thread;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	spin_ms(10);
	is_over = true;
	held_tid = 0;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sampled_tid, 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	sample(1);
	assert_int_equal(sampled_tid, gettid());
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(count_stream().is_whole);
}

static sigjmp_buf before_alarm;
static volatile sig_atomic_t n_jumps;

static void raise_alarm(void)
{
	raise(SIGALRM);
}

static void jump(int signal)
{
	(void)signal;
	n_jumps++;
	siglongjmp(before_alarm, 1);
}

/* A signal that comes while a sample is taken: as a timeout may. */
UNIT_TEST(a_handler_that_jumps_away_does_not_hold_a_stop)
{
	int status = -1;
	struct timespec end;
	pthread_t thread;

	n_jumps = 0;
	signal(SIGALRM, jump);
	made_up_guest.on_take = raise_alarm;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sigsetjmp(before_alarm, 1);
	while (n_jumps < 10)
		;
	made_up_guest.on_take = NULL;
	signal(SIGALRM, SIG_IGN);
	assert_int_equal(pthread_create(&thread, NULL, stop_it, &status), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &end), 0);
	signal(SIGALRM, SIG_DFL);
	assert_int_equal(status, 0);
	assert_true(count_stream().is_whole);
	/* none of them ended within its sample */
	assert_int_equal(count_stream().n_samples, n_samples());
}

UNIT_TEST(the_sampled_thread_may_end_before_the_run)
{
	assert_int_equal(in_a_thread(start_it), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(count_stream().is_whole);
	run(LUAM_SYSPROF_DEFAULT, 2);
}

/* Exits with the number of the check that failed. */
static void run_child(void)
{
	if (luaM_sysprof_stop(L) != PROFILE_ERRRUN)
		_exit(1);
	if (n_samples() == 0)	/* the parent's, up to the fork */
		_exit(2);
	if (seen.n_stopped)
		_exit(3);
	seen.n = 0;
	if (start(LUAM_SYSPROF_CALLGRAPH))
		_exit(4);
	sample(3);
	if (luaM_sysprof_stop(L) || !count_stream().is_whole)
		_exit(5);
	_exit(n_samples() ? 0 : 6);
}

/*
 * Wait until all other threads wait: a fork while one of them allocates leaves
 * the child a lock of AddressSanitizer that nothing releases.
 */
static void let_others_begin(void)
{
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], state = 0;

		snprintf(path, sizeof(path), "/proc/self/task/%s/stat",
			 entry->d_name);
		while (entry->d_name[0] != '.' && state != 'S' &&
		       atoi(entry->d_name) != getpid()) {
			FILE *stat = fopen(path, "r");

			assert_non_null(stat);
			assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c",
						&state), 1);
			fclose(stat);
		}
	}
	closedir(tasks);
}

UNIT_TEST(a_forked_child_is_idle_and_has_a_run_of_its_own)
{
	int status;
	pid_t pid;

	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(3);
	let_others_begin();
	pid = fork();
	if (pid == 0)
		run_child();
	sample(3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(count_stream().is_whole);
}

UNIT_TEST(a_forked_child_has_no_file_of_the_parents_run)
{
	size_t n = n_open();
	int status;
	pid_t pid;

	lua_pushcfunction(L, luaopen_seam_sysprof);
	lua_call(L, 0, 1);
	lua_setglobal(L, "sysprof");
	assert_int_equal(luaL_dostring(L, "assert(sysprof.start{ mode = 'C', "
					  "path = '/dev/null' })"), 0);
	assert_int_equal(n_open(), n + 1);
	pid = fork();
	if (pid == 0)
		_exit(n_open() == n ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(luaL_dostring(L, "assert(sysprof.stop())"), 0);
	assert_int_equal(n_open(), n);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
