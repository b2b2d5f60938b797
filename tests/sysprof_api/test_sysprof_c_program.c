/* SPDX-License-Identifier: MIT */
/* test_sysprof_c_program.c - what a run does to the program */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "sysprof_run.h"
#include "unit.h"

/* Without descriptors there is no perf event, without signals no timer. */
static void a_tick_that_is_refused_is_an_error_of_start(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);
	struct rlimit files, signals, none;
	struct sigaction now;

	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_SIGPENDING, &signals);
	none = (struct rlimit) { 0, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	none.rlim_max = signals.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	assert_refused(&opt, PROFILE_ERRIO);
	assert_int_equal(errno, EAGAIN);
	sigaction(SIGURG, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
	/* the timer alone */
	setrlimit(RLIMIT_SIGPENDING, &signals);
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	sample(2);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	setrlimit(RLIMIT_NOFILE, &files);
	assert_true(n_samples() >= 2);
}

static volatile sig_atomic_t n_urgent;

static void count_urgent(int signal)
{
	(void)signal;
	n_urgent++;
	errno = ENOTTY;
}

static void the_programs_handler_has_its_own_signals_only(void **state)
{
	struct sigaction own = { .sa_handler = count_urgent }, now;

	n_urgent = 0;
	sigaction(SIGURG, &own, NULL);
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(3);
	raise(SIGURG);
	sample(3);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(n_urgent, 1);
	sigaction(SIGURG, NULL, &now);
	assert_ptr_equal(now.sa_handler, count_urgent);
	signal(SIGURG, SIG_DFL);
}

static struct sigaction replaced;

static void count_and_chain(int signal, siginfo_t *info, void *context)
{
	n_urgent++;
	replaced.sa_sigaction(signal, info, context);
}

/* It is before the profiler's then, and after it. */
static void a_handler_that_chains_survives_a_second_run(void **state)
{
	struct sigaction own = { .sa_sigaction = count_and_chain,
				 .sa_flags = SA_SIGINFO };

	n_urgent = 0;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sigaction(SIGURG, &own, &replaced);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	raise(SIGURG);
	sample(2);
	raise(SIGURG);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(n_urgent, 2);
	signal(SIGURG, SIG_DFL);
}

static void set_errno(void)
{
	errno = EXDEV;
}

/* Nothing is lost silently: they are samples of which nothing is known. */
static void ticks_without_a_signal_are_samples_without_stacks(void **state)
{
	struct luam_sysprof_counters counters;
	sigset_t urgent, before;

	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &urgent, &before), 0);
	made_up_guest.n_taken = 0;
	spin_ms(50);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(luaM_sysprof_report(&counters), 0);
	assert_true(counters.vmst_interp >= 45);
	assert_int_equal(count_stream().n_samples, counters.samples);
	assert_true(count_stream().is_whole);
	/* the signal that was pending is ignored by now */
	assert_int_equal(made_up_guest.n_taken, 0);
}

static void errno_is_as_it_was(void **state)
{
	made_up_guest.on_take = set_errno;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	errno = ECHILD;
	sample(3);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(errno, ECHILD);
}

static void a_thousand_runs_leave_nothing(void **state)
{
	size_t n = n_open();
	struct sigaction now;
	int top = lua_gettop(L);

	for (int i = 0; i < 1000; i++) {
		enum luam_sysprof_mode mode = i % 20 ? LUAM_SYSPROF_DEFAULT :
						       LUAM_SYSPROF_CALLGRAPH;

		seen.n = 0;
		assert_int_equal(start(mode), 0);
		assert_int_equal(luaM_sysprof_stop(L), 0);
	}
	assert_int_equal(n_open(), n);
	assert_int_equal(lua_gettop(L), top);
	sigaction(SIGURG, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	assert_int_equal(count_stream().n_samples, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tick_that_is_refused_is_an_error_of_start),
		TEST(the_programs_handler_has_its_own_signals_only),
		TEST(a_handler_that_chains_survives_a_second_run),
		TEST(ticks_without_a_signal_are_samples_without_stacks),
		TEST(errno_is_as_it_was),
		TEST(a_thousand_runs_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
