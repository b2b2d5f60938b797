/* SPDX-License-Identifier: MIT */
/*
 * seam/lmisclib.h - sysprof, a sampling profiler of C and Lua, for LuaJIT
 *
 * The C API of LuaJIT's sysprof, for a LuaJIT that was built without it: the
 * names, types and contracts of its RFC, and those of the implementation in
 * tarantool/luajit, which differ in spelling (both spellings are here).
 *
 *	luaM_sysprof_configure(&(struct luam_sysprof_config){
 *		.writer = writer, .on_stop = on_stop });
 *	luaM_sysprof_start(L, &(struct luam_sysprof_options){
 *		.mode = LUAM_SYSPROF_CALLGRAPH, .interval = 10,
 *		.buf = buf, .len = sizeof(buf), .ctx = ctx });
 *	...
 *	luaM_sysprof_stop(L);
 *	luaM_sysprof_report(&counters);
 *
 * Build with "pkg-config --cflags --libs seam-sysprof", with which
 * <lmisclib.h> is found too.  LuaJIT's own library is not linked: its functions
 * are those that the process has.  seam-sysprof(3) has the Lua API, and the
 * differences of both APIs from the original.
 *
 * There is one profiler a process.  It samples the thread that started it, at
 * each interval of that thread's CPU time, by SIGURG, whatever runs there:
 * VM, C, or C called by the VM.
 *
 * Threads: any thread may call.  While another thread starts or stops the
 * profiler, luaM_sysprof_start() and luaM_sysprof_stop() fail with
 * PROFILE_ERRRUN, all other functions with PROFILE_ERRUSE.
 *
 * In a forked child the profiler is idle; the child neither writes nor frees
 * what its parent's run has.
 *
 * Source: the RFC "lua: system-wide profiler"; src/lmisclib.h of
 * tarantool/luajit, b52fe979.
 */
#ifndef SEAM_LMISCLIB_H
#define SEAM_LMISCLIB_H

#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LUAMISC_API
#define LUAMISC_API extern __attribute__((visibility("default")))
#endif

enum luam_sysprof_mode {
	/*
	 * DEFAULT mode collects only the counters, in memory, for
	 * luaM_sysprof_report() after the profiler stopped.
	 */
	LUAM_SYSPROF_DEFAULT,
	/* LEAF mode streams samples with the top frames of both stacks too. */
	LUAM_SYSPROF_LEAF,
	/* CALLGRAPH mode streams samples with both stacks in full. */
	LUAM_SYSPROF_CALLGRAPH,
};

/* Return values, by the implementation's names and by the RFC's. */
enum {
	PROFILE_SUCCESS = 0,
	PROFILE_ERRUSE = 1,	/* wrong use */
	PROFILE_ERRRUN = 2,	/* a profiler runs, or does not run */
	PROFILE_ERRMEM = 3,	/* no memory */
	PROFILE_ERRIO = 4,	/* errno is the cause */

	SYSPROF_SUCCESS = PROFILE_SUCCESS,
	SYSPROF_ERRUSE = PROFILE_ERRUSE,
	SYSPROF_ERRRUN = PROFILE_ERRRUN,
	SYSPROF_ERRMEM = PROFILE_ERRMEM,
	SYSPROF_ERRIO = PROFILE_ERRIO,
};

/* Samples by the state of the VM, in the order of the states; their sum. */
struct luam_sysprof_counters {
	uint64_t vmst_interp;
	uint64_t vmst_lfunc;
	uint64_t vmst_ffunc;
	uint64_t vmst_cfunc;
	uint64_t vmst_gc;
	uint64_t vmst_exit;
	uint64_t vmst_record;
	uint64_t vmst_opt;
	uint64_t vmst_asm;
	uint64_t vmst_trace;
	uint64_t samples;
};

struct luam_sysprof_options {
	enum luam_sysprof_mode mode;
	/* CPU time between two samples, ms; at most 2^31 - 1 is used. */
	uint64_t interval;
	/*
	 * A buffer of @len bytes, in which events are collected until the
	 * buffer is full.  The profiler uses it until on_stop; not in DEFAULT
	 * mode.
	 */
	uint8_t *buf;
	size_t len;
	void *ctx;		/* for the writer and on_stop */
};

/*
 * Write @len bytes at *@data.  A writer runs in a signal handler:
 * signal-safety(7) lists the functions that it may call.  Returns @len; a
 * smaller number is an error, whose cause is errno.  A writer may set *@data to
 * another buffer of the same size, which is filled next, or to NULL, which ends
 * profiling.  After an error or NULL the profiler is halted until
 * luaM_sysprof_stop().
 */
typedef size_t (*luam_Sysprof_writer)(const void **data, size_t len,
				      void *ctx);

/*
 * The profiler stopped, and uses @ctx and @buf no longer; or the profiler did
 * not start.  @buf is the buffer of the options, or the last buffer that the
 * writer set, which may be NULL.  on_stop runs in the thread that starts or
 * stops the profiler.  Returns 0 on success.  Called once for each
 * luaM_sysprof_start() that is not in DEFAULT mode or that fails; by
 * luaM_sysprof_stop(), or by lua_close().
 */
typedef int (*luam_Sysprof_on_stop)(void *ctx, uint8_t *buf);

/*
 * Unwind the stack in C: call @frame_writer for each frame, from the leaf to
 * the root, until it returns NULL.  It runs in the profiler's signal handler.
 * All frames are written, whatever their @frame_no (0 is the first, the leaf).
 */
typedef void (*luam_Sysprof_backtracer)(void *(*frame_writer)(int frame_no,
							      void *addr));

struct luam_sysprof_config {
	luam_Sysprof_writer writer;
	luam_Sysprof_on_stop on_stop;
	luam_Sysprof_backtracer backtracer;	/* NULL: Seam's unwinder */
};

/*
 * Set all three functions; a member that is NULL unsets that function.
 * PROFILE_ERRUSE: the profiler runs, or @config is NULL.
 */
LUAMISC_API int
luaM_sysprof_configure(const struct luam_sysprof_config *config);

/*
 * Set one function.  PROFILE_ERRUSE: the profiler runs; or @writer or @on_stop
 * is NULL.
 */
LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer);
LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop);
LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer);

/*
 * Start the profiler.  Each failure calls on_stop, if that is set:
 * PROFILE_ERRRUN  a profiler of this process runs: this one, another copy of
 *                 this library, LuaJIT's jit.p, or the sampler of a recorder
 * PROFILE_ERRUSE  @opt is NULL; the mode is not one of enum luam_sysprof_mode;
 *                 LEAF or CALLGRAPH mode without a buffer, a writer or
 *                 on_stop; an interval of 0
 * PROFILE_ERRMEM  no memory, in the VM or for the profiler
 * PROFILE_ERRIO   errno is the writer's; or that of the system call by which
 *                 samples are requested; or ENOTSUP for a VM that is not
 *                 supported: seam_sysprof_refusal() has the reason
 */
LUAMISC_API int luaM_sysprof_start(lua_State *L,
				   const struct luam_sysprof_options *opt);

/*
 * Stop the profiler, from any thread.
 * PROFILE_ERRRUN  the profiler does not run
 * PROFILE_ERRUSE  a VM other than @L started it; or the call is in the
 *                 profiler's signal handler
 * PROFILE_ERRIO   the profiler stopped, and the writer or on_stop failed: errno
 *                 is the cause
 */
LUAMISC_API int luaM_sysprof_stop(lua_State *L);

/*
 * The counters of the last run; 0 before the first run.  PROFILE_ERRUSE: the
 * profiler runs, or @counters is NULL.
 */
LUAMISC_API int luaM_sysprof_report(struct luam_sysprof_counters *counters);

/*
 * Why the last luaM_sysprof_start() failed with ENOTSUP, as text that stays
 * valid; or NULL.
 */
LUAMISC_API const char *seam_sysprof_refusal(void);

/*
 * Openers of the Lua modules "seam.sysprof" and "seam.misc", for
 * package.preload; require() finds them by itself in seam.so.
 */
LUAMISC_API int luaopen_seam_sysprof(lua_State *L);
LUAMISC_API int luaopen_seam_misc(lua_State *L);

/* The implementation's spelling. */
#define luam_Sysprof_Counters	luam_sysprof_counters
#define luam_Sysprof_Options	luam_sysprof_options
#define luam_Sysprof_Config	luam_sysprof_config

#ifdef __cplusplus
}
#endif

#endif /* SEAM_LMISCLIB_H */
