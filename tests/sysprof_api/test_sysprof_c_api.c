/* SPDX-License-Identifier: MIT */
/* test_sysprof_c_api.c - the contracts of <seam/lmisclib.h> */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <seam/lmisclib.h>

#include <cmocka.h>

#include "made_up_guest.h"
#include "target/agent/tick.h"
#include "target/sysprof/native_symbols.h"
#include "wire/sysprof/sysprof.h"

enum { MAX_BYTES = 32 << 20, BUFFER_BYTES = 64 << 10 };

static const struct made_up_function functions[] = {
	{ "@app.lua", 12, 0, 0x7f0000001000, SEAM_GUEST_FRAME_GUEST },
};

/* What the writer and on_stop saw. */
static struct {
	uint8_t *bytes;
	size_t n;
	int fails_after;	/* calls; -1: never */
	unsigned int n_stopped;
	void *ctx;
	uint8_t *buf;
	int on_stop_error;
} seen;

static uint8_t buffer[BUFFER_BYTES];
static lua_State *L;

static size_t write_seen(const void **data, size_t n, void *ctx)
{
	if (seen.fails_after >= 0 && seen.fails_after-- == 0) {
		errno = ENOSPC;
		return 0;
	}
	if (ctx != &seen || n > MAX_BYTES - seen.n)
		abort();
	memcpy(seen.bytes + seen.n, *data, n);
	seen.n += n;
	return n;
}

static int stop_seen(void *ctx, uint8_t *buf)
{
	seen.n_stopped++;
	seen.ctx = ctx;
	seen.buf = buf;
	errno = seen.on_stop_error;
	return seen.on_stop_error ? -1 : 0;
}

static int set_up(void **state)
{
	static uint8_t *bytes;
	const struct luam_sysprof_config config = {
		.writer = write_seen, .on_stop = stop_seen };

	(void)state;
	if (!bytes)
		bytes = malloc(MAX_BYTES);
	memset(&seen, 0, sizeof(seen));
	seen.bytes = bytes;
	seen.fails_after = -1;
	made_up_guest = (struct made_up_guest) {
		.functions = functions, .n_functions = 1,
		.vmstate = SEAM_VMSTATE_LFUNC, .ids = { 1 }, .n_ids = 1,
	};
	L = luaL_newstate();
	luaL_openlibs(L);
	return luaM_sysprof_configure(&config);
}

static int tear_down(void **state)
{
	(void)state;
	if (L)
		lua_close(L);
	L = NULL;
	return 0;
}

static struct luam_sysprof_options options(enum luam_sysprof_mode mode)
{
	return (struct luam_sysprof_options) {
		.mode = mode, .interval = 1, .buf = buffer,
		.len = sizeof(buffer), .ctx = &seen };
}

static int start(enum luam_sysprof_mode mode)
{
	struct luam_sysprof_options opt = options(mode);

	return luaM_sysprof_start(L, &opt);
}

/* Use CPU time until @n samples were taken. */
static void sample(uint64_t n)
{
	uint64_t end = made_up_guest.n_taken + n;

	/* what the test set is seen by the handler, and the reverse */
	while (made_up_guest.n_taken < end)
		atomic_signal_fence(memory_order_seq_cst);
}

static uint64_t n_samples(void)
{
	struct luam_sysprof_counters counters;

	assert_int_equal(luaM_sysprof_report(&counters), PROFILE_SUCCESS);
	return counters.samples;
}

/* ---- moments between the profiler's steps ---- */

static void (*on_tick_start)(void);	/* in start, when ticks come */
static atomic_int held_tid;		/* its handler is held at the entry */
static atomic_bool is_held;

int __real_seam_tick_start(struct seam_tick *tick, int signal,
			   uint64_t period_ns);
int __wrap_seam_tick_start(struct seam_tick *tick, int signal,
			   uint64_t period_ns);
long __real_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
		    long f);

int __wrap_seam_tick_start(struct seam_tick *tick, int signal,
			   uint64_t period_ns)
{
	int r = __real_seam_tick_start(tick, signal, period_ns);

	if (on_tick_start)
		on_tick_start();
	return r;
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e,
		    long f)
{
	long r = __real_syscall(number, a, b, c, d, e, f);

	while (number == SYS_gettid && r == held_tid)
		is_held = true;
	return r;
}

/* ---- the stream that was written ---- */

struct stream_counts {
	size_t n_samples, n_symbols, n_events;
	uint64_t leaf_pc;	/* of the first sample */
	size_t n_host;
	bool is_whole;		/* it has its end */
};

static struct stream_counts count_stream(void)
{
	struct stream_counts c = { 0 };
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item = { 0 };
	struct seam_err err = { 0 };
	int r;

	seam_sysprof_begin(&reader, (struct seam_bytes) { seen.bytes,
							  seen.n });
	while ((r = seam_sysprof_next(&reader, &item, &err)) == 1) {
		c.is_whole = item.kind == SEAM_SYSPROF_END;
		if (item.kind == SEAM_SYSPROF_SYMBOL_CFUNC) {
			c.n_symbols += !item.is_event;
			c.n_events += item.is_event;
		}
		if (item.kind != SEAM_SYSPROF_SAMPLE)
			continue;
		if (c.n_samples++ == 0) {
			c.n_host = item.n_host;
			c.leaf_pc = item.n_host ? item.host[0] : 0;
		}
	}
	c.is_whole &= r == 0 && seam_cursor_left(&reader.cursor) == 0;
	seam_sysprof_fini(&reader);
	return c;
}

/* ---- misuse ---- */

static void assert_refused(const struct luam_sysprof_options *opt, int status)
{
	unsigned int n = seen.n_stopped;

	assert_int_equal(luaM_sysprof_start(L, opt), status);
	assert_int_equal(seen.n_stopped, n + 1);
	assert_ptr_equal(seen.ctx, opt ? opt->ctx : NULL);
	assert_ptr_equal(seen.buf, opt ? opt->buf : NULL);
}

static void misuse_calls_on_stop(void **state)
{
	struct luam_sysprof_options opt = options(0x40);

	(void)state;
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

static void a_stream_needs_writer_and_on_stop(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	(void)state;
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
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

static void setters_refuse_null_and_a_profiler_that_runs(void **state)
{
	struct luam_sysprof_config config = { 0 };

	(void)state;
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

static void there_is_one_profiler_and_its_vm_stops_it(void **state)
{
	lua_State *other = luaL_newstate(), *coroutine = lua_newthread(L);
	struct luam_sysprof_counters counters;
	struct luam_sysprof_options opt = options(0x40);

	(void)state;
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

static void a_refused_vm_has_its_reason(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	(void)state;
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

static void ignore_samples(void *data, lua_State *state, int n, int vmstate)
{
	(void)data;
	(void)state;
	(void)n;
	(void)vmstate;
}

static void it_does_not_start_beside_the_vms_own_profiler(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_DEFAULT);

	(void)state;
	luaJIT_profile_start(L, "i10", ignore_samples, NULL);
	assert_refused(&opt, PROFILE_ERRRUN);
	luaJIT_profile_stop(L);
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
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

static void without_memory_a_start_fails_without_an_error_of_lua(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);
	lua_State *first = L;

	(void)state;
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

static void counters_are_of_the_last_run(void **state)
{
	struct luam_sysprof_counters counters;

	(void)state;
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
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(n_samples() <= 2);
	assert_int_equal(seen.n_stopped, 0);
}

static uint64_t cpu_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void samples_times_the_interval_are_the_cpu_time(void **state)
{
	uint64_t begin, ms;

	(void)state;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	begin = cpu_time_ns();
	sample(200);
	ms = (cpu_time_ns() - begin) / 1000000;
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_in_range(n_samples(), ms - ms / 50 - 2, ms + ms / 50 + 2);
	assert_int_equal(count_stream().n_samples, n_samples());
	assert_true(count_stream().is_whole);
}

static void spin_ms(uint64_t ms)
{
	uint64_t end = cpu_time_ns() + ms * 1000000;

	while (cpu_time_ns() < end)
		;
}

static void an_interval_may_be_longer_than_any_run(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_DEFAULT);

	(void)state;
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

static void a_writer_that_fails_at_the_start_is_an_error_of_start(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	(void)state;
	seen.fails_after = 0;
	opt.len = 16;
	errno = 0;
	assert_refused(&opt, PROFILE_ERRIO);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
	/* and the next one has all symbols */
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
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

static void on_stop_of_a_failed_start_has_the_last_buffer(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);

	(void)state;
	opt.len = 16;
	assert_int_equal(luaM_sysprof_set_writer(swap_and_fail), 0);
	assert_int_equal(luaM_sysprof_start(L, &opt), PROFILE_ERRIO);
	assert_int_equal(errno, EIO);
	assert_int_equal(seen.n_stopped, 1);
	assert_ptr_equal(seen.buf, last_buffer);
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
}

static void a_writer_that_fails_later_is_an_error_of_stop(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);
	uint64_t n;

	(void)state;
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
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

static void an_on_stop_that_fails_is_an_error_of_stop(void **state)
{
	(void)state;
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

static void a_callback_cannot_stop_it(void **state)
{
	(void)state;
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

static void all_frames_of_a_backtracer_are_written(void **state)
{
	struct stream_counts c;

	(void)state;
	assert_int_equal(luaM_sysprof_set_backtracer(write_frames), 0);
	for (n_frames = 1; n_frames < 10; n_frames++) {
		seen.n = 0;
		assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
		sample(1);
		assert_int_equal(luaM_sysprof_stop(L), 0);
		c = count_stream();
		assert_int_equal(c.n_host, n_frames);
		assert_int_equal(c.leaf_pc, 0x77);
	}
}

static void a_backtracer_is_ended_when_there_are_too_many_frames(void **state)
{
	(void)state;
	n_frames = 100000;
	assert_int_equal(luaM_sysprof_set_backtracer(write_frames), 0);
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(1);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(count_stream().n_host, SEAM_GUEST_MAX_HOST);
	assert_int_equal(n_written, SEAM_GUEST_MAX_HOST);
}

static void write_null(void *(*frame_writer)(int frame_no, void *addr))
{
	/* and goes on after a NULL */
	for (int i = 0; i < 2000; i++)
		frame_writer(i, i == 1 ? NULL : (void *)0x88);
}

static void a_frame_at_0_does_not_end_a_stack(void **state)
{
	(void)state;
	assert_int_equal(luaM_sysprof_set_backtracer(write_null), 0);
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(1);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_int_equal(count_stream().n_host, SEAM_GUEST_MAX_HOST);
	assert_true(count_stream().is_whole);
}

static void the_topmost_frame_of_the_host_is_not_lost(void **state)
{
	struct stream_counts c;
	Dl_info leaf, own;

	(void)state;
	for (enum luam_sysprof_mode mode = LUAM_SYSPROF_LEAF;
	     mode <= LUAM_SYSPROF_CALLGRAPH; mode++) {
		seen.n = 0;
		assert_int_equal(start(mode), 0);
		sample(3);
		assert_int_equal(luaM_sysprof_stop(L), 0);
		c = count_stream();
		assert_true(dladdr((void *)c.leaf_pc, &leaf));
		assert_true(dladdr((void *)count_stream, &own));
		assert_ptr_equal(leaf.dli_fbase, own.dli_fbase);
		assert_true(mode == LUAM_SYSPROF_LEAF ? c.n_host == 1 :
							c.n_host > 3);
	}
}

/* ---- ends ---- */

static void closing_the_vm_stops_it(void **state)
{
	(void)state;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(3);
	lua_close(L);
	assert_int_equal(seen.n_stopped, 1);
	assert_true(count_stream().is_whole);
	assert_int_equal(count_stream().n_samples, n_samples());
	L = luaL_newstate();
	assert_int_equal(luaM_sysprof_stop(L), PROFILE_ERRRUN);
}

static void closing_a_vm_does_not_stop_a_run_of_another(void **state)
{
	lua_State *first = luaL_newstate(), *second = L;

	(void)state;
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

static void another_thread_may_stop_it(void **state)
{
	int status = -1;
	pthread_t thread;

	(void)state;
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

static void calls_during_a_start_fail(void **state)
{
	(void)state;
	on_tick_start = call_early;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(2);
	assert_int_equal(luaM_sysprof_stop(L), 0);
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

static void a_handler_of_the_last_run_takes_no_sample_of_the_next(void **state)
{
	sigset_t urgent, before;
	pthread_t thread;
	int status = -1;

	(void)state;
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

static void the_sampled_thread_may_end_before_the_run(void **state)
{
	(void)state;
	assert_int_equal(in_a_thread(start_it), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(count_stream().is_whole);
	assert_int_equal(start(LUAM_SYSPROF_DEFAULT), 0);
	sample(2);
	assert_int_equal(luaM_sysprof_stop(L), 0);
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

static void a_forked_child_is_idle_and_has_a_run_of_its_own(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	sample(3);
	pid = fork();
	if (pid == 0)
		run_child();
	sample(3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(count_stream().is_whole);
}

static size_t n_open(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void a_forked_child_has_no_file_of_the_parents_run(void **state)
{
	size_t n = n_open();
	int status;
	pid_t pid;

	(void)state;
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

/* ---- what it does to the program ---- */

/* Without descriptors there is no perf event, without signals no timer. */
static void a_tick_that_is_refused_is_an_error_of_start(void **state)
{
	struct luam_sysprof_options opt = options(LUAM_SYSPROF_CALLGRAPH);
	struct rlimit files, signals, none;
	struct sigaction now;

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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
	(void)state;
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

	(void)state;
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

/* ---- C symbols ---- */

static bool is_named(const char *name, uint64_t addr, bool is_event)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item = { 0 };
	struct seam_err err = { 0 };
	bool found = false;

	seam_sysprof_begin(&reader, (struct seam_bytes) { seen.bytes,
							  seen.n });
	while (seam_sysprof_next(&reader, &item, &err) == 1)
		found |= item.kind == SEAM_SYSPROF_SYMBOL_CFUNC &&
			 item.is_event == is_event &&
			 item.cfunc.addr == addr &&
			 item.cfunc.name.size == strlen(name) &&
			 !memcmp(item.cfunc.name.data, name, strlen(name));
	seam_sysprof_fini(&reader);
	return found;
}

static void loaded_files_have_their_symbols(void **state)
{
	void *library, *late;

	(void)state;
	assert_int_equal(start(LUAM_SYSPROF_CALLGRAPH), 0);
	library = dlopen(getenv("LATE_LIBRARY"), RTLD_NOW);
	assert_non_null(library);
	late = dlsym(library, "late_function");
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(is_named("luaL_newstate", (uint64_t)luaL_newstate, false));
	/* static, so in .symtab alone */
	assert_true(is_named("count_urgent", (uint64_t)count_urgent, false));
	assert_true(is_named("late_function", (uint64_t)late, true));
	assert_true(count_stream().n_symbols > 1000);
	dlclose(library);
	/* and the next stream begins with what is loaded then */
	seen.n = 0;
	assert_int_equal(start(LUAM_SYSPROF_LEAF), 0);
	assert_int_equal(luaM_sysprof_stop(L), 0);
	assert_true(is_named("luaL_newstate", (uint64_t)luaL_newstate, false));
	assert_false(is_named("late_function", (uint64_t)late, false));
	assert_int_equal(count_stream().n_events, 0);
}

static void count_late(void *context, uint64_t addr, const char *name, size_t n)
{
	(void)addr;
	*(int *)context += n == 13 && !memcmp(name, "late_function", n);
}

/* What was loaded there in between may have taken its names. */
static void a_file_that_is_loaded_again_is_listed_again(void **state)
{
	struct seam_native_symbols symbols = { 0 };
	int n = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(getenv("LATE_LIBRARY"), RTLD_NOW);

		assert_non_null(library);
		assert_int_equal(seam_native_symbols_put(&symbols, NULL,
							 count_late, &n), 1);
		assert_int_equal(n, i + 1);
		assert_int_equal(seam_native_symbols_put(&symbols, NULL,
							 count_late, &n), 0);
		dlclose(library);
		assert_int_equal(seam_native_symbols_put(&symbols, NULL,
							 count_late, &n), 1);
	}
	assert_int_equal(n, 3);
	seam_native_symbols_fini(&symbols);
}

enum { FAR = 1 << 30 };

/* Move functions of a library's .symtab out of it, or make them too long. */
static void damage_symbols(uint8_t *bytes)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
	const Elf64_Shdr *section = (const Elf64_Shdr *)(bytes +
							 header->e_shoff);

	while (section->sh_type != SHT_SYMTAB)
		section++;
	for (size_t i = 0; i < section->sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym *s = (Elf64_Sym *)(bytes + section->sh_offset) + i;

		if (i % 2)
			s->st_value += FAR;
		else
			s->st_size = FAR;
	}
}

/* Load a copy of the library with damaged symbols. */
static void *load_damaged(void)
{
	int from = open(getenv("LATE_LIBRARY"), O_RDONLY);
	int to = memfd_create("damaged", 0);
	struct stat stat;
	char path[32];
	void *bytes, *library;

	assert_int_equal(fstat(from, &stat), 0);
	bytes = malloc((size_t)stat.st_size);
	assert_int_equal(read(from, bytes, (size_t)stat.st_size),
			 stat.st_size);
	damage_symbols(bytes);
	assert_int_equal(write(to, bytes, (size_t)stat.st_size),
			 stat.st_size);
	free(bytes);
	close(from);
	/* it stays open, because it is read by this name again */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
	library = dlopen(path, RTLD_NOW);
	assert_non_null(library);
	return library;
}

static uint64_t damaged_addr;

static void count_far(void *context, uint64_t addr, const char *name, size_t n)
{
	(void)name;
	(void)n;
	/* the file is smaller than half of it */
	*(int *)context += addr > damaged_addr + FAR / 2 &&
			   addr < damaged_addr + 2 * (uint64_t)FAR;
}

static void a_file_has_no_symbols_outside_of_it(void **state)
{
	struct seam_native_symbols symbols = { 0 };
	int n_far = 0;
	void *library;

	(void)state;
	seam_native_symbols_put(&symbols, NULL, count_far, &n_far);
	library = load_damaged();
	damaged_addr = (uint64_t)dlsym(library, "late_function");
	n_far = 0;
	assert_int_equal(seam_native_symbols_put(&symbols, NULL, count_far,
						 &n_far), 1);
	assert_int_equal(n_far, 0);
	seam_native_symbols_fini(&symbols);
	dlclose(library);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	struct luam_sysprof_counters none;
	const struct CMUnitTest tests[] = {
		TEST(misuse_calls_on_stop),
		TEST(a_stream_needs_writer_and_on_stop),
		TEST(setters_refuse_null_and_a_profiler_that_runs),
		TEST(there_is_one_profiler_and_its_vm_stops_it),
		TEST(a_refused_vm_has_its_reason),
		TEST(it_does_not_start_beside_the_vms_own_profiler),
		TEST(without_memory_a_start_fails_without_an_error_of_lua),
		TEST(counters_are_of_the_last_run),
		TEST(samples_times_the_interval_are_the_cpu_time),
		TEST(an_interval_may_be_longer_than_any_run),
		TEST(a_writer_that_fails_at_the_start_is_an_error_of_start),
		TEST(on_stop_of_a_failed_start_has_the_last_buffer),
		TEST(a_writer_that_fails_later_is_an_error_of_stop),
		TEST(an_on_stop_that_fails_is_an_error_of_stop),
		TEST(a_callback_cannot_stop_it),
		TEST(all_frames_of_a_backtracer_are_written),
		TEST(a_backtracer_is_ended_when_there_are_too_many_frames),
		TEST(a_frame_at_0_does_not_end_a_stack),
		TEST(the_topmost_frame_of_the_host_is_not_lost),
		TEST(closing_the_vm_stops_it),
		TEST(closing_a_vm_does_not_stop_a_run_of_another),
		TEST(another_thread_may_stop_it),
		TEST(calls_during_a_start_fail),
		TEST(a_handler_of_the_last_run_takes_no_sample_of_the_next),
		TEST(the_sampled_thread_may_end_before_the_run),
		TEST(a_forked_child_is_idle_and_has_a_run_of_its_own),
		TEST(a_forked_child_has_no_file_of_the_parents_run),
		TEST(a_tick_that_is_refused_is_an_error_of_start),
		TEST(the_programs_handler_has_its_own_signals_only),
		TEST(a_handler_that_chains_survives_a_second_run),
		TEST(ticks_without_a_signal_are_samples_without_stacks),
		TEST(errno_is_as_it_was),
		TEST(a_thousand_runs_leave_nothing),
		TEST(loaded_files_have_their_symbols),
		TEST(a_file_that_is_loaded_again_is_listed_again),
		TEST(a_file_has_no_symbols_outside_of_it),
	};

	/* all zero before the first run */
	memset(&none, 0xff, sizeof(none));
	if (luaM_sysprof_report(&none) || none.samples || none.vmst_trace)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
