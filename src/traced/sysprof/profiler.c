/* SPDX-License-Identifier: MIT */
/*
 * profiler.c - the functions of <seam/lmisclib.h>
 *
 * The profiler has to stop before the VM is freed: an object in the registry
 * has a finalizer that stops it, which lua_close() calls.
 */
#include "traced/sysprof/profiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

enum {
	MAX_INTERVAL = INT32_MAX,	/* ms */
	/* With a real-time priority a loop would keep the handler out. */
	PAUSE_NS = 20 * 1000,
};

#define REGISTRY_KEY	"seam.sysprof"

/* Changed by the caller's thread, while the profiler is idle. */
static struct luam_sysprof_config configured;

/* Of the run that is under way, or the last one; its start writes it. */
static struct {
	struct luam_sysprof_options options;
	struct seam_sysprof_output output;
	struct seam_native_symbols symbols;
} current;

static struct seam_sysprof_run *const run = &seam_sysprof_run;
static const char *refusal;

static bool is_streamed(const struct luam_sysprof_options *opt)
{
	return opt->mode != LUAM_SYSPROF_DEFAULT;
}

/* ---- the handler, before the program's ---- */

int seam_signal_real(int signal, const struct sigaction *new,
		     struct sigaction *old)
{
	return sigaction(signal, new, old);
}

/* 0, or the negative errno of sigaction(2). */
static int install_handler(void)
{
	static const struct seam_signal_front front = {
		.take = seam_sysprof_on_signal,
		.flags = SA_RESTART | SA_ONSTACK,
	};

	return seam_signal_front_begin(SEAM_SYSPROF_SIGNAL, &front);
}

/*
 * Put back what was there, unless the program installed another since; or the
 * signal is blocked in this thread, because then one may be pending.  In the
 * sampled thread, after its tick was stopped.
 */
static void remove_handler(void)
{
	sigset_t blocked;

	if (pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 &&
	    !sigismember(&blocked, SEAM_SYSPROF_SIGNAL))
		seam_signal_front_end(SEAM_SYSPROF_SIGNAL);
}

/*
 * ---- files that are loaded while samples are taken
 *
 * The handler cannot read the files of a library, so a thread does: when a
 * stack ended in code of no known file, it prepares unwinding for new files,
 * finds VMs in them, and makes events of their symbols.  It has all signals
 * blocked, and sleeps until then.  Where it cannot be started, new files are
 * noticed at the end only.
 */

/* Between two scans: code of no file may run all the time. */
enum { MIN_PAUSE_NS = 50000000 };

static struct {
	pthread_t thread;
	bool is_started;
	atomic_bool is_ending;
	sem_t end;
} loads;

struct events {
	struct seam_sysprof_out out;
	SEAM_ARRAY(uint8_t) bytes;
	uint8_t scratch[16 << 10];
};

static size_t collect(const void **data, size_t n, void *context)
{
	struct events *events = context;

	return SEAM_ARRAY_EXTEND(&events->bytes, *(const uint8_t **)data, n) ?
	       n : 0;
}

static void put_late(void *context, uint64_t addr, const char *name, size_t n)
{
	struct events *events = context;

	seam_sysprof_stream_native(&events->out, true, addr, name, n);
}

static void push(const uint8_t *bytes, size_t n)
{
	struct seam_sysprof_late *late = malloc(sizeof(*late) + n);

	if (!late)
		return;
	late->n = n;
	memcpy(late->bytes, bytes, n);
	late->next = atomic_load(&run->late);
	/* release: pairs with the acquire in seam_sysprof_write_late() */
	while (!atomic_compare_exchange_weak_explicit(&run->late, &late->next,
						      late,
						      memory_order_release,
						      memory_order_relaxed))
		;
}

/*
 * Push events for files loaded since the last time.  The caller is the thread
 * below, or that has ended.
 */
static void push_loads(void)
{
	struct events events = { .bytes = { .items = NULL } };

	events.out = (struct seam_sysprof_out) {
		.writer = collect, .ctx = &events,
		.data = events.scratch, .size = sizeof(events.scratch) };
	seam_native_symbols_put(&current.symbols, NULL, put_late, &events);
	seam_sysprof_out_flush(&events.out);
	if (events.bytes.n && !events.out.is_halted)
		push(events.bytes.items, events.bytes.n);
	free(events.bytes.items);
}

static void pause_or_end(void)
{
	uint64_t end_ns = seam_clock_ns() + MIN_PAUSE_NS;
	struct timespec until = {
		.tv_sec = (time_t)(end_ns / SEAM_NS_PER_S),
		.tv_nsec = (long)(end_ns % SEAM_NS_PER_S),
	};

	while (sem_clockwait(&loads.end, CLOCK_MONOTONIC, &until) < 0 &&
	       errno == EINTR)
		;
}

static void *work(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "seam-sysprof");
	for (;;) {
		while (sem_wait(&run->wake) < 0)
			;
		if (atomic_load(&loads.is_ending))
			return NULL;
		/* what is loaded from here on wakes it again */
		atomic_store(&run->is_woken, false);
		seam_self_refresh();
		seam_guest_refresh();
		if (is_streamed(&current.options))
			push_loads();
		pause_or_end();
	}
}

static void begin_loads(void)
{
	sigset_t all, before;

	atomic_store(&loads.is_ending, false);
	sem_init(&run->wake, 0, 0);
	atomic_store(&run->is_woken, false);
	sem_init(&loads.end, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	loads.is_started = !pthread_create(&loads.thread, NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_loads(void)
{
	if (!loads.is_started)
		return;
	atomic_store(&loads.is_ending, true);
	sem_post(&loads.end);
	sem_post(&run->wake);
	pthread_join(loads.thread, NULL);
	loads.is_started = false;
}

/* ---- forked children ---- */

/*
 * In a child, whose parent's profiler ran.  Its threads are gone, but for the
 * one that forked, and its tick is not inherited.
 */
static void become_idle(void)
{
	uint32_t state = atomic_load(&run->state);

	run->tick = (struct seam_tick) { .fd = -1 };
	run->tid = 0;
	/* never freed: other threads may have been changing it in the parent */
	atomic_store(&run->late, NULL);
	run->written = NULL;
	current.symbols = (struct seam_native_symbols) { .files.n = 0 };
	loads.is_started = false;
	seam_signal_front_begin_child();
	remove_handler();
	if (state != SEAM_SYSPROF_BUSY && is_streamed(&current.options) &&
	    current.output.on_child)
		current.output.on_child(current.options.ctx);
	atomic_store(&run->n_in_handler, 0);
	run->is_sampling = false;
	atomic_store(&run->state, SEAM_SYSPROF_IDLE);
}

static void on_fork(void)
{
	if (atomic_load(&run->state) != SEAM_SYSPROF_IDLE)
		become_idle();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, on_fork);
}

/* A child that was made past fork()'s handlers is noticed here. */
static uint32_t state_now(void)
{
	uint32_t state = atomic_load(&run->state);

	if (state == SEAM_SYSPROF_IDLE || run->pid == getpid())
		return state;
	become_idle();
	return SEAM_SYSPROF_IDLE;
}

/* False while it runs, is halted, or another thread starts or stops it. */
static bool is_idle(void)
{
	return state_now() == SEAM_SYSPROF_IDLE;
}

/* ---- configuration ---- */

int luaM_sysprof_configure(const struct luam_sysprof_config *config)
{
	if (!config || !is_idle())
		return PROFILE_ERRUSE;
	configured = *config;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
	if (!writer || !is_idle())
		return PROFILE_ERRUSE;
	configured.writer = writer;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
	if (!on_stop || !is_idle())
		return PROFILE_ERRUSE;
	configured.on_stop = on_stop;
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
	if (!is_idle())
		return PROFILE_ERRUSE;
	configured.backtracer = backtracer;
	return PROFILE_SUCCESS;
}

/* ---- other profilers of this process ---- */

/* Of any function's type; a pointer to it is no pointer to an object. */
static bool find_function(void *scope, const char *name,
			  void (**function)(void))
{
	void *symbol = dlsym(scope, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol;
}

static const void *file_of(void (*function)(void))
{
	Dl_info info;
	void *addr;

	memcpy(&addr, &function, sizeof(addr));
	return dladdr(addr, &info) ? info.dli_fbase : NULL;
}

/*
 * jit.p: the profiling timer runs, and its signal goes to the VM's code; with
 * another handler it is another profiler's timer, which disturbs nothing here.
 * Source: LuaJIT, lj_profile.c, LJ_PROFILE_SIGPROF.
 */
static bool jit_p_runs(void)
{
	struct itimerval timer;
	struct sigaction action;
	void (*start)(void), (*handler)(void);

	if (getitimer(ITIMER_PROF, &timer) < 0 ||
	    (!timer.it_value.tv_sec && !timer.it_value.tv_usec) ||
	    sigaction(SIGPROF, NULL, &action) < 0 ||
	    action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
	    !find_function(RTLD_DEFAULT, "luaJIT_profile_start", &start))
		return false;
	memcpy(&handler, &action.sa_sigaction, sizeof(handler));
	return file_of(handler) && file_of(handler) == file_of(start);
}

/* Whether another copy of this library that @scope exports runs. */
static bool copy_runs(void *scope)
{
	const char *(*own)(void) = seam_sysprof_refusal;
	int (*report)(struct luam_sysprof_counters *);
	struct luam_sysprof_counters counters;
	void (*found)(void), (*found_report)(void);

	if (!find_function(scope, "seam_sysprof_refusal", &found) ||
	    !memcmp(&found, &own, sizeof(found)) ||
	    !find_function(scope, "luaM_sysprof_report", &found_report) ||
	    file_of(found) != file_of(found_report))
		return false;
	memcpy(&report, &found_report, sizeof(report));
	return report(&counters) == PROFILE_ERRUSE;
}

/*
 * The copy in the program is in the global scope.  One that require() loaded is
 * not; but while it runs, the signal's handler is its own.
 */
static bool other_sysprof_runs(void)
{
	struct sigaction action;
	Dl_info info;
	void *file, *handler;
	bool runs = copy_runs(RTLD_DEFAULT);

	if (runs || sigaction(SEAM_SYSPROF_SIGNAL, NULL, &action) < 0)
		return runs;
	memcpy(&handler, &action.sa_sigaction, sizeof(handler));
	if (!dladdr(handler, &info))
		return false;
	file = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!file)
		return false;
	runs = copy_runs(file);
	dlclose(file);
	return runs;
}

static bool sampler_samples(void)
{
	void (*found)(void);
	int (*is_sampling)(void);

	if (!find_function(RTLD_DEFAULT, "seam_sampler_is_sampling", &found))
		return false;
	memcpy(&is_sampling, &found, sizeof(found));
	return is_sampling();
}

/* ---- the VM, which stops it ---- */

/* The same for all coroutines of a VM. */
static const void *id_of(lua_State *L)
{
	return lua_topointer(L, LUA_REGISTRYINDEX);
}

/* A run of another VM goes on: it has another identity. */
static int stop_run(lua_State *L)
{
	luaM_sysprof_stop(L);
	return 0;
}

static int make_guard(lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, REGISTRY_KEY);
	if (lua_touserdata(L, -1))
		return 0;
	lua_newuserdata(L, 1);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, stop_run);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_setfield(L, LUA_REGISTRYINDEX, REGISTRY_KEY);
	return 0;
}

/* Make the object, unless it is there.  Throws no error.  False: no memory. */
static bool guard(lua_State *L)
{
	if (lua_cpcall(L, make_guard, NULL) == 0)
		return true;
	lua_pop(L, 1);
	return false;
}

/* ---- start ---- */

static bool is_valid(const struct luam_sysprof_options *opt,
		     const struct seam_sysprof_output *output)
{
	if (!opt || opt->mode < LUAM_SYSPROF_DEFAULT ||
	    opt->mode > LUAM_SYSPROF_CALLGRAPH || !opt->interval)
		return false;
	return !is_streamed(opt) ||
	       (opt->buf && opt->len && output->writer && output->on_stop);
}

/* Find VMs and images.  0, or a negative errno. */
static int prepare_walks(void)
{
	static bool is_prepared;
	int r = is_prepared ? 0 : seam_self_init();

	if (r < 0)
		return r;
	seam_self_refresh();
	/* without the bounds of the stack, walks take longer and still work */
	seam_self_thread_begin();
	r = is_prepared ? seam_guest_refresh() : seam_guest_init();
	if (r == -ENOENT)
		refusal = "no LuaJIT whose symbols can be found";
	else if (r < 0 && *seam_guest_refusal())
		refusal = seam_guest_refusal();
	is_prepared = r >= 0;
	return r == -ENOENT ? -ENOTSUP : r < 0 ? r : 0;
}

static void put_native(void *context, uint64_t addr, const char *name,
		       size_t n)
{
	struct seam_sysprof_stream *stream = context;

	seam_sysprof_stream_native(&stream->out, false, addr, name, n);
}

/* Begin the stream.  0, or the negative errno of opening or writing it. */
static int begin_stream(lua_State *L)
{
	const struct luam_sysprof_options *opt = &current.options;
	struct seam_sysprof_stream *stream = &run->stream;
	struct seam_sysprof_out out = {
		.writer = current.output.writer, .ctx = opt->ctx,
		.data = opt->buf, .size = opt->len,
		.enough = current.output.enough,
	};
	struct seam_native_names names = { .list = { .items = NULL } };
	int r = current.output.open ? current.output.open(opt->ctx) : 0;

	if (r < 0)
		return r;
	seam_sysprof_stream_begin(stream, &out);
	seam_lua_symbols_add(L, &names);
	seam_native_symbols_fini(&current.symbols);
	seam_native_symbols_put(&current.symbols, &names, put_native, stream);
	free(names.list.items);
	seam_sysprof_stream_end_symbols(stream);
	/* if the start fails, on_stop is called with the writer's last one */
	current.options.buf = stream->out.data;
	return stream->out.is_halted ? -stream->out.saved_errno : 0;
}

static int begin_ticks(void)
{
	uint64_t interval = current.options.interval;
	int r = install_handler();

	if (r < 0)
		return r;
	if (interval > MAX_INTERVAL)
		interval = MAX_INTERVAL;
	r = seam_tick_start(&run->tick, run->tid, SEAM_SYSPROF_SIGNAL,
			    interval * SEAM_NS_PER_MS);
	/* after the tick: another thread may stop what is running */
	if (r == 0)
		atomic_store(&run->state, SEAM_SYSPROF_RUNNING);
	else
		remove_handler();
	return r;
}

/* Start what was validated; the state is BUSY.  0, or a negative errno. */
static int start(lua_State *L)
{
	bool has_stream = is_streamed(&current.options);
	int r = prepare_walks();

	r = r ?: has_stream ? begin_stream(L) : 0;
	if (r < 0)
		return r;
	run->vm = id_of(L);
	run->mode = (uint8_t)current.options.mode;
	run->backtracer = configured.backtracer;
	run->tid = (int32_t)syscall(SYS_gettid);
	run->n_unmapped = seam_self_n_unmapped();
	memset(run->counts, 0, sizeof(run->counts));
	begin_loads();
	r = begin_ticks();
	if (r < 0)
		end_loads();
	return r;
}

/* With the state BUSY, and this process's.  @buf: the last one in use. */
static int start_validated(lua_State *L,
			   const struct luam_sysprof_options *opt,
			   const struct seam_sysprof_output *output,
			   uint8_t **buf)
{
	int r;

	if (!is_valid(opt, output))
		return PROFILE_ERRUSE;
	/* these take the loader's lock */
	if (jit_p_runs() || sampler_samples() || other_sysprof_runs())
		return PROFILE_ERRRUN;
	current.options = *opt;
	current.output = *output;
	r = start(L);
	*buf = current.options.buf;
	if (r == 0)
		return PROFILE_SUCCESS;
	errno = -r;
	return r == -ENOMEM ? PROFILE_ERRMEM : PROFILE_ERRIO;
}

int seam_sysprof_start(lua_State *L, const struct luam_sysprof_options *opt,
		       const struct seam_sysprof_output *output)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t idle = SEAM_SYSPROF_IDLE;
	uint8_t *buf = opt ? opt->buf : NULL;
	int status = guard(L) ? PROFILE_ERRRUN : PROFILE_ERRMEM, saved_errno;

	refusal = NULL;
	pthread_once(&once, watch_forks);
	if (status == PROFILE_ERRRUN && is_idle() &&
	    atomic_compare_exchange_strong(&run->state, &idle,
					   SEAM_SYSPROF_BUSY)) {
		run->pid = getpid();
		status = start_validated(L, opt, output, &buf);
		if (status != PROFILE_SUCCESS)
			atomic_store(&run->state, SEAM_SYSPROF_IDLE);
	}
	saved_errno = errno;
	if (status != PROFILE_SUCCESS && output->on_stop)
		output->on_stop(opt ? opt->ctx : NULL, buf);
	errno = saved_errno;
	return status;
}

int luaM_sysprof_start(lua_State *L, const struct luam_sysprof_options *opt)
{
	struct seam_sysprof_output output = {
		.writer = configured.writer, .on_stop = configured.on_stop,
		.enough = SIZE_MAX };

	return seam_sysprof_start(L, opt, &output);
}

const char *seam_sysprof_refusal(void)
{
	return refusal;
}

/* ---- stop ---- */

/*
 * End the ticks; no handler samples after it.  Returns the ticks that are in no
 * sample, because the program blocked the signal or replaced the handler; 0 in
 * another thread, which cannot read them.
 */
static uint64_t end_ticks(void)
{
	const struct timespec pause = { 0, PAUSE_NS };
	uint64_t n_missed;

	if (syscall(SYS_gettid) == run->tid) {
		n_missed = seam_tick_rest(&run->tick);
		seam_tick_stop(&run->tick);
		remove_handler();
		/* one is due at any time */
		return n_missed > 1 ? n_missed : 0;
	}
	seam_tick_abandon(&run->tick);
	/* pairs with the handler; see profiler.h */
	while (atomic_load(&run->n_in_handler))
		syscall(SYS_nanosleep, &pause, NULL);
	/* a signal may still come, so the handler stays */
	seam_tick_stop(&run->tick);
	return 0;
}

static void free_late(struct seam_sysprof_late *late)
{
	while (late) {
		struct seam_sysprof_late *next = late->next;

		free(late);
		late = next;
	}
}

/* 0, or the errno of the writer or on_stop. */
static int end_stream(uint64_t n_missed)
{
	struct seam_sysprof_out *out = &run->stream.out;
	int error = 0;

	if (!out->is_halted) {
		push_loads();
		seam_sysprof_write_late(run);
		seam_sysprof_stream_missed(&run->stream, n_missed);
		seam_sysprof_stream_end(&run->stream);
	}
	free_late(atomic_exchange(&run->late, NULL));
	free_late(run->written);
	run->written = NULL;
	seam_native_symbols_fini(&current.symbols);
	errno = 0;
	if (current.output.on_stop(current.options.ctx, out->data))
		error = errno ? errno : EIO;
	return out->is_halted ? out->saved_errno : error;
}

/* @vm: of the start; NULL: any. */
static int stop(const void *vm)
{
	uint32_t state = state_now();
	uint64_t n_missed;
	int saved_errno = errno, error = 0;

	if (state != SEAM_SYSPROF_RUNNING && state != SEAM_SYSPROF_HALTED)
		return PROFILE_ERRRUN;
	if ((vm && vm != run->vm) ||
	    (syscall(SYS_gettid) == run->tid && run->is_sampling))
		return PROFILE_ERRUSE;
	while (!atomic_compare_exchange_weak(&run->state, &state,
					     SEAM_SYSPROF_BUSY))
		if (state != SEAM_SYSPROF_RUNNING &&
		    state != SEAM_SYSPROF_HALTED)
			return PROFILE_ERRRUN;
	n_missed = end_ticks();
	if (state == SEAM_SYSPROF_RUNNING)
		run->counts[SEAM_VMSTATE_INTERP] += n_missed;
	end_loads();
	if (is_streamed(&current.options))
		error = end_stream(n_missed);
	atomic_store(&run->state, SEAM_SYSPROF_IDLE);
	errno = error ? error : saved_errno;
	return error ? PROFILE_ERRIO : PROFILE_SUCCESS;
}

__attribute__((destructor)) static void stop_at_exit(void)
{
	if (current.output.ends_at_exit)
		stop(NULL);
}

int luaM_sysprof_stop(lua_State *L)
{
	return stop(id_of(L));
}

/* ---- what it did ---- */

int luaM_sysprof_report(struct luam_sysprof_counters *counters)
{
	uint64_t *counts, n = 0;

	if (!counters || !is_idle())
		return PROFILE_ERRUSE;
	/* the order of the members is that of the states */
	counts = &counters->vmst_interp;
	for (size_t i = 0; i < SEAM_N_VMSTATES; i++)
		n += counts[i] = run->counts[i];
	counters->samples = n;
	return PROFILE_SUCCESS;
}
