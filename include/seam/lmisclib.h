/* SPDX-License-Identifier: MIT */
/*
 * seam/lmisclib.h - sysprof, a sampling profiler of C and Lua, for LuaJIT
 *
 * The C API of LuaJIT's sysprof, for a LuaJIT that has none: the names, types
 * and contracts of its RFC, and those of the implementation in
 * tarantool/luajit, which differ in spelling (both are here).
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
 * <lmisclib.h> is found too.  LuaJIT's own library is not linked: its API is
 * that of the process.  seam-sysprof(3) has the Lua API, and where both differ
 * from the original.
 *
 * There is one profiler a process.  It samples the thread that started it, at
 * each interval of that thread's CPU time, by SIGURG, whatever runs there:
 * VM, C, or C called by the VM.
 *
 * Threads: any may call.  During another's start or stop, start and stop fail
 * with PROFILE_ERRRUN, and the others with PROFILE_ERRUSE.
 *
 * In a forked child the profiler is idle, and nothing of the parent's is
 * written or freed there.
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

/* What the functions return; names of the implementation and of the RFC. */
enum {
	PROFILE_SUCCESS = 0,
	PROFILE_ERRUSE = 1,	/* wrong use */
	PROFILE_ERRRUN = 2,	/* a profiler runs, or none does */
	PROFILE_ERRMEM = 3,	/* no memory */
	PROFILE_ERRIO = 4,	/* errno says which */

	SYSPROF_SUCCESS = PROFILE_SUCCESS,
	SYSPROF_ERRUSE = PROFILE_ERRUSE,
	SYSPROF_ERRRUN = PROFILE_ERRRUN,
	SYSPROF_ERRMEM = PROFILE_ERRMEM,
	SYSPROF_ERRIO = PROFILE_ERRIO,
};

/* Samples by the state of the VM, in the order of the states; then all. */
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
	/* CPU time between two samples, ms; more than 2^31 - 1 is that. */
	uint64_t interval;
	/*
	 * Where events are collected until it is full: @len bytes of the
	 * caller's, until on_stop.  Not used in DEFAULT mode.
	 */
	uint8_t *buf;
	size_t len;
	void *ctx;		/* for the writer and on_stop */
};

/*
 * Write @len bytes at *@data.  It runs in a signal handler: signal-safety(7)
 * has what it may call.  Returns @len; less is an error, with its errno.  It
 * may set *@data to another buffer of the same size, which is then filled; to
 * NULL to end profiling.  After either the profiler is halted until
 * luaM_sysprof_stop().
 */
typedef size_t (*luam_Sysprof_writer)(const void **data, size_t len,
				      void *ctx);

/*
 * The profiler stopped, and uses @ctx and @buf no longer; or it did not
 * start.  @buf is the buffer of the options, or the last one of the writer's,
 * which may be NULL.  It runs in the thread that starts or stops.
 * Returns 0 on success.  Called once for each luaM_sysprof_start() that is not
 * in DEFAULT mode or that fails; by luaM_sysprof_stop(), or by lua_close().
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
 * Set all three at once: what is NULL is then not set.  PROFILE_ERRUSE: a
 * profiler runs, or @config is NULL.
 */
LUAMISC_API int
luaM_sysprof_configure(const struct luam_sysprof_config *config);

/*
 * Set one.  PROFILE_ERRUSE: a profiler runs; or a NULL, which only the
 * backtracer may be.
 */
LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer);
LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop);
LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer);

/*
 * Start.  Each failure calls on_stop, if that is set:
 * PROFILE_ERRRUN  a profiler of this process runs: this one, another copy of
 *                 this library, LuaJIT's jit.p, or the agent of a recorder
 * PROFILE_ERRUSE  @opt is NULL; the mode is none; not DEFAULT mode, and a
 *                 buffer, a writer or on_stop is missing; an interval of 0
 * PROFILE_ERRMEM  no memory, in the VM or for the profiler
 * PROFILE_ERRIO   errno: that of the writer; or of the system call by which
 *                 samples are requested; or ENOTSUP for a VM that is not
 *                 supported: seam_sysprof_refusal() has the reason
 */
LUAMISC_API int luaM_sysprof_start(lua_State *L,
				   const struct luam_sysprof_options *opt);

/*
 * Stop, from any thread.
 * PROFILE_ERRRUN  it does not run
 * PROFILE_ERRUSE  another VM than @L started it; or called in its handler
 * PROFILE_ERRIO   stopped, but errno is that of the writer or on_stop
 */
LUAMISC_API int luaM_sysprof_stop(lua_State *L);

/*
 * The counters of the last run; 0 before the first.  PROFILE_ERRUSE: it runs,
 * or @counters is NULL.
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
