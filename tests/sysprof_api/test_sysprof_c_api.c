/* SPDX-License-Identifier: MIT */
/* test_sysprof_c_api.c - starts, writers, backtracers, and the program */
#include <dlfcn.h>

#include <lauxlib.h>
#include <lualib.h>

#include "sysprof_run.h"
#include "wire/sysprof/sysprof.h"
#include "unit.h"

/* ---- misuse ---- */

UNIT_TEST(misuse_calls_on_stop)
{
	struct luam_sysprof_options opt = options(0x40);

	assert_refused(&opt, PROFILE_ERRUSE);
	opt.mode = LUAM_SYSPROF_CALLGRAPH;
	opt.buf = NULL;
	assert_refused(&opt, PROFILE_ERRUSE);
	opt = options(LUAM_SYSPROF_LEAF);
	opt.len = 0;
	assert_refused(&opt, PROFILE_ERRUSE);
	opt = options(LUAM_SYSPROF_DEFAULT);
	opt.interval = 0;
	assert_refused(&opt, PROFILE_ERRUSE);
	assert_refused(NULL, PROFILE_ERRUSE);
	assert_true(luaM_sysprof_report(NULL) == PROFILE_ERRUSE);
}

UNIT_TEST(a_stream_needs_writer_and_on_stop)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	assert_int_equal(luaM_sysprof_configure(
		&(struct luam_sysprof_config) { .on_stop = stop_seen }), 0);
	assert_refused(&opt, PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_configure(
		&(struct luam_sysprof_config) { .writer = write_seen }), 0);
	assert_int_equal(luaM_sysprof_start(L, &opt), PROFILE_ERRUSE);
	/* the setters complete it */
	assert_int_equal(luaM_sysprof_set_on_stop(stop_seen), 0);
	assert_int_equal(luaM_sysprof_start(L, &opt), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	/* counters need neither */
	assert_int_equal(luaM_sysprof_configure(
		&(struct luam_sysprof_config) { .writer = NULL }), 0);
	run(LUAM_SYSPROF_DEFAULT, 0);
}

UNIT_TEST(setters_refuse_null_and_a_profiler_that_runs)
{
	struct luam_sysprof_config config = { 0 };

	assert_int_equal(luaM_sysprof_set_writer(NULL), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_set_on_stop(NULL), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_configure(NULL), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_set_backtracer(NULL), 0);
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	assert_int_equal(luaM_sysprof_set_writer(write_seen), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_set_on_stop(stop_seen), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_set_backtracer(NULL), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_configure(&config), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

UNIT_TEST(there_is_one_profiler_and_its_vm_stops_it)
{
	lua_State *other = luaL_newstate(), *coroutine = lua_newthread(L);
	struct luam_sysprof_counters counters;
	struct luam_sysprof_options opt = options(0x40);

	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	/* running is checked before the options */
	assert_refused(&opt, PROFILE_ERRRUN);
	assert_int_equal(luaM_sysprof_report(&counters), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_stop(other), PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_stop(coroutine), 0);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
	lua_close(other);
}

UNIT_TEST(a_refused_vm_has_its_reason)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	made_up_guest.refusal = -ENOTSUP;
	made_up_guest.refusal_text = "frames differ";
	errno = 0;
	assert_refused(&opt, PROFILE_ERRIO);
	assert_int_equal(errno, ENOTSUP);
	assert_string_equal(seam_sysprof_refusal(), "frames differ");
	made_up_guest.refusal = -ENOENT;
	assert_refused(&opt, PROFILE_ERRIO);
	assert_int_equal(errno, ENOTSUP);
	assert_non_null(strstr(seam_sysprof_refusal(), "LuaJIT"));
	made_up_guest.refusal = 0;
	assert_int_equal(luaM_sysprof_start(L, &opt), 0);
	assert_null(seam_sysprof_refusal());
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

static bool has_memory;

static void *allocate(void *context, void *old, size_t old_size, size_t size)
{
	(void)context;
	(void)old_size;
	if (size && has_memory)
		return realloc(old, size);
	if (!size)
		free(old);
	return NULL;
}

UNIT_TEST(without_memory_a_start_fails_without_an_error_of_lua)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);
	lua_State *first = L;

	has_memory = true;
	L = lua_newstate(allocate, NULL);
	/* a VM of 32-bit pointers allocates itself */
	if (L) {
		has_memory = false;
		assert_refused(&opt, PROFILE_ERRMEM);
		has_memory = true;
		assert_int_equal(lua_gettop(L), 0);
		assert_int_equal(luaM_sysprof_start(L, &opt), 0);
		lua_close(L);
		assert_true(count_stream().is_whole);
	}
	L = first;
}

/* ---- counters ---- */

UNIT_TEST(counters_are_of_the_last_run)
{
	struct luam_sysprof_counters counters;

	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	sample(3);
	made_up_guest.vmstate = SEAM_VMSTATE_TRACE;
	sample(2);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(luaM_sysprof_report(&counters), 0);
	assert_true(counters.vmst_lfunc >= 3);
	assert_true(counters.vmst_trace >= 2);
	assert_int_equal(counters.samples,
			 counters.vmst_lfunc + counters.vmst_trace);
	run(LUAM_SYSPROF_DEFAULT, 0);
	assert_true(n_samples() <= 2);
	assert_int_equal(seen.n_stopped, 0);
}

UNIT_TEST(samples_times_the_interval_are_the_cpu_time)
{
	uint64_t begin, ms;

	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	begin = cpu_time_ns();
	sample(200);
	ms = (cpu_time_ns() - begin) / 1000000;
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_in_range(n_samples(), ms - ms / 50 - 2, ms + ms / 50 + 2);
	assert_int_equal(count_stream().n_samples, n_samples());
	assert_true(count_stream().is_whole);
}

UNIT_TEST(an_interval_may_be_longer_than_any_run)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_DEFAULT);

	/* times 1000000 the second is 0.4 ms, modulo 2^64 */
	for (opt.interval = UINT64_MAX; opt.interval;
	     opt.interval = opt.interval == UINT64_MAX ?
			    UINT64_MAX / 1000000 + 1 : 0) {
		assert_int_equal(luaM_sysprof_start(L, &opt), 0);
		spin_ms(5);
		assert_int_equal(luaM_sysprof_stop(L), 0);
		assert_int_equal(n_samples(), 0);
	}
}

/* ---- writers ---- */

UNIT_TEST(a_writer_that_fails_at_the_start_is_an_error_of_start)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	seen.fails_after = 0;
	opt.len = 16;
	errno = 0;
	assert_refused(&opt, PROFILE_ERRIO);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
	/* and the next one has all symbols */
	run(LUAM_SYSPROF_CALLGRAPH, 0);
	assert_true(count_stream().n_symbols > 1000);
}

static uint8_t *last_buffer;

/* Writes twice, to another buffer each time, and then fails without errno. */
static size_t swap_and_fail(const void **data, size_t n, void *ctx)
{
	static uint8_t buffers[2][16];

	(void)ctx;
	if (seen.n++ == 2) {
		errno = 0;
		return 0;
	}
	last_buffer = buffers[seen.n % 2];
	*data = last_buffer;
	return n;
}

UNIT_TEST(on_stop_of_a_failed_start_has_the_last_buffer)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	opt.len = 16;
	assert_int_equal(luaM_sysprof_set_writer(swap_and_fail), 0);
	assert_int_equal(luaM_sysprof_start(L, &opt), PROFILE_ERRIO);
	assert_int_equal(errno, EIO);
	assert_int_equal(seen.n_stopped, 1);
	assert_ptr_equal(seen.buf, last_buffer);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
}

UNIT_TEST(a_writer_that_fails_later_is_an_error_of_stop)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);
	uint64_t n;

	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	seen.fails_after = 0;
	/* until the buffer was full once */
	for (n = 0; seen.fails_after == 0 && n < 5000; n++)
		sample(1);
	assert_int_equal(seen.fails_after, -1);
	/* halted: still not to be started, and no sample is taken */
	n = made_up_guest.n_taken;
	spin_ms(20);
	assert_true(made_up_guest.n_taken == n);
	assert_refused(&opt, PROFILE_ERRRUN);
	seen.n_stopped = 0;
	errno = 0;
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRIO);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(seen.n_stopped, 1);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
	run(LUAM_SYSPROF_DEFAULT, 0);
}

UNIT_TEST(an_on_stop_that_fails_is_an_error_of_stop)
{
	assert_int_equal(start(LUAM_SYSPROF_LEAF), 0);
	seen.on_stop_error = EDQUOT;
	errno = 0;
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRIO);
	assert_int_equal(errno, EDQUOT);
	assert_true(count_stream().is_whole);
	assert_ptr_equal(seen.ctx, &seen);
	assert_ptr_equal(seen.buf, buffer);
}

static int status_of_nested_stop;

static void stop_in_handler(void)
{
	status_of_nested_stop = luaM_sysprof_stop(L);
}

UNIT_TEST(a_callback_cannot_stop_it)
{
	status_of_nested_stop = -1;
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	made_up_guest.on_take = stop_in_handler;
	sample(2);
	assert_int_equal(status_of_nested_stop, PROFILE_ERRUSE);
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

/* ---- backtracers ---- */

static size_t n_frames, n_written;

static void write_frames(void *(*frame_writer)(int frame_no, void *addr))
{
	bool goes_on = true;

	n_written = 0;
	for (size_t i = 0; i < n_frames && goes_on; i++, n_written++)
		goes_on = frame_writer((int)i, (void *)(i ? 0x1000 * i : 0x77));
}

UNIT_TEST(all_frames_of_a_backtracer_are_written)
{
	struct stream_counts c;

	assert_int_equal(luaM_sysprof_set_backtracer(write_frames), 0);
	for (n_frames = 1; n_frames < 10; n_frames++) {
		run(LUAM_SYSPROF_CALLGRAPH, 1);
		c = count_stream();
		assert_int_equal(c.n_host, n_frames);
		assert_int_equal(c.leaf_pc, 0x77);
	}
}

UNIT_TEST(a_backtracer_is_ended_when_there_are_too_many_frames)
{
	n_frames = 100000;
	assert_int_equal(luaM_sysprof_set_backtracer(write_frames), 0);
	run(LUAM_SYSPROF_CALLGRAPH, 1);
	assert_int_equal(count_stream().n_host, SEAM_GUEST_MAX_HOST);
	assert_int_equal(n_written, SEAM_GUEST_MAX_HOST);
}

static void write_null(void *(*frame_writer)(int frame_no, void *addr))
{
	/* and goes on after a NULL */
	for (int i = 0; i < 2000; i++)
		frame_writer(i, i == 1 ? NULL : (void *)0x88);
}

UNIT_TEST(a_frame_at_0_does_not_end_a_stack)
{
	assert_int_equal(luaM_sysprof_set_backtracer(write_null), 0);
	run(LUAM_SYSPROF_CALLGRAPH, 1);
	assert_int_equal(count_stream().n_host, SEAM_GUEST_MAX_HOST);
	assert_true(count_stream().is_whole);
}

UNIT_TEST(the_topmost_frame_of_the_host_is_not_lost)
{
	struct stream_counts c;
	Dl_info leaf, own;

	for (enum luam_sysprof_mode mode = LUAM_SYSPROF_LEAF;
	     mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
		run(mode, 3);
		c = count_stream();
		assert_true(dladdr((void *)c.leaf_pc, &leaf));
		assert_true(dladdr((void *)count_stream, &own));
		assert_ptr_equal(leaf.dli_fbase, own.dli_fbase);
		assert_true(mode == LUAM_SYSPROF_LEAF ? c.n_host == 1 :
							c.n_host > 3);
	}
}

/* ---- what a run does to the program ---- */

/* Without descriptors there is no perf event, without signals no timer. */
UNIT_TEST(a_tick_that_is_refused_is_an_error_of_start)
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
	run(LUAM_SYSPROF_DEFAULT, 2);
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

UNIT_TEST(the_programs_handler_has_its_own_signals_only)
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
UNIT_TEST(a_handler_that_chains_survives_a_second_run)
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
UNIT_TEST(ticks_without_a_signal_are_samples_without_stacks)
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

UNIT_TEST(errno_is_as_it_was)
{
	made_up_guest.on_take = set_errno;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	errno = ECHILD;
	sample(3);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(errno, ECHILD);
}

UNIT_TEST(a_thousand_runs_leave_nothing)
{
	size_t n = n_open();
	struct sigaction now;
	int top = lua_gettop(L);

	for (int i = 0; i < 1000; i++) {
		enum luam_sysprof_mode mode = i % 20 ? LUAM_SYSPROF_DEFAULT :
						       LUAM_SYSPROF_CALLGRAPH;

		run(mode, 0);
	}
	assert_int_equal(n_open(), n);
	assert_int_equal(lua_gettop(L), top);
	sigaction(SIGURG, NULL, &now);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	assert_int_equal(count_stream().n_samples, 0);
}

int main(void)
{
	struct luam_sysprof_counters none;

	/* all zero before the first run */
	memset(&none, 0xff, sizeof(none));
	if (luaM_sysprof_report(&none) || none.samples || none.vmst_trace)
		return 1;
	return unit_run(NULL, NULL, set_up, tear_down);
}
