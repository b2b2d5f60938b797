/* SPDX-License-Identifier: MIT */
/*
 * lua_sysprof.c - the Lua modules seam.sysprof and seam.misc
 *
 * Functions of Lua's C API are undefined symbols of the library: the dynamic
 * linker finds them in the program, or in its libluajit.  require() finds the
 * openers in seam.so, which is this library by another name: its loader looks
 * for a module a.b in the library of a too.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "traced/sysprof/profiler.h"
#include "wire/vmstate.h"

enum { DEFAULT_INTERVAL = 10 };	/* ms */

#define DEFAULT_PATH	"sysprof.bin"

/* ---- results: true; or nil, a message and an errno, as of io.open() ---- */

static int push(lua_State *L, const char *message, int number)
{
	lua_pushnil(L);
	lua_pushstring(L, message);
	lua_pushinteger(L, number);
	return 3;
}

/* @status: of <seam/lmisclib.h>; errno with PROFILE_ERRIO. */
static int push_failure(lua_State *L, int status)
{
	int error = status == PROFILE_ERRMEM ? ENOMEM : errno;
	const char *refusal = seam_sysprof_refusal();

	if (status == PROFILE_ERRUSE)
		return push(L, "profiler misuse", EINVAL);
	if (status == PROFILE_ERRRUN)
		return push(L, "profiler is running already", EINVAL);
	if (error == ENOTSUP && refusal)
		return push(L, refusal, error);
	return push(L, strerror(error), error);
}

static int push_status(lua_State *L, int status)
{
	if (status != PROFILE_SUCCESS)
		return push_failure(L, status);
	lua_pushboolean(L, 1);
	return 1;
}

/* ---- options ---- */

/* Push the field of the table at 1, as rawget() has it; its type. */
static int push_field(lua_State *L, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, 1);
	return lua_type(L, -1);
}

static bool parse_mode(lua_State *L, struct luam_sysprof_options *opt)
{
	static const char letters[] = "DLC";	/* in the order of the enum */
	const char *text, *found = NULL;
	size_t n;

	if (push_field(L, "mode") == LUA_TSTRING) {
		text = lua_tolstring(L, -1, &n);
		found = n == 1 ? memchr(letters, *text, 3) : NULL;
	}
	lua_pop(L, 1);
	if (found)
		opt->mode = (enum luam_sysprof_mode)(found - letters);
	return found;
}

/* A number is cut to an integer; what is no number is the default. */
static bool parse_interval(lua_State *L, struct luam_sysprof_options *opt)
{
	double ms = DEFAULT_INTERVAL;

	if (push_field(L, "interval") == LUA_TNUMBER)
		ms = lua_tonumber(L, -1);
	lua_pop(L, 1);
	/* also false for NaN */
	if (!(ms >= 1 && ms < (double)INT32_MAX + 1))
		return false;
	opt->interval = (uint64_t)ms;
	return true;
}

/* The path stays on the stack.  NULL: it is none. */
static const char *parse_path(lua_State *L)
{
	size_t n = 0;
	const char *path = DEFAULT_PATH;
	int type = push_field(L, "path");

	if (type == LUA_TNIL)
		return path;
	path = type == LUA_TSTRING ? lua_tolstring(L, -1, &n) : NULL;
	return path && !memchr(path, 0, n) ? path : NULL;
}

/*
 * ---- the file
 *
 * The buffer is 8 MiB, as in the original: of address space, because samples
 * are written when there are 256 KiB of them, so that little is lost in a
 * crash.  The symbols at the start are written with the first samples.
 */

enum {
	BUFFER_BYTES = 8 << 20,
	ENOUGH_BYTES = 256 << 10,
};

struct stream_file {
	int fd;
	uint8_t *buffer;
	char path[];
};

static int open_file(void *ctx)
{
	struct stream_file *file = ctx;

	file->fd = open(file->path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC |
				    O_NOCTTY, 0644);
	return file->fd < 0 ? -errno : 0;
}

/*
 * As write(2), without its signals: the program would die of SIGXFSZ at its
 * limit of a file's size, and of SIGPIPE where @fd is a FIFO that nobody reads
 * any more.  One that was pending before stays.
 */
static ssize_t write_without_signal(int fd, const void *bytes, size_t n)
{
	const struct timespec now = { 0 };
	uint64_t signals = UINT64_C(1) << (SIGXFSZ - 1) |
			   UINT64_C(1) << (SIGPIPE - 1);
	uint64_t old = 0, pending = 0;
	ssize_t r;
	int error;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &old, sizeof(old));
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	r = write(fd, bytes, n);
	error = errno;
	signals &= ~pending;
	if (r < 0 && (error == EFBIG || error == EPIPE))
		syscall(SYS_rt_sigtimedwait, &signals, NULL, &now,
			sizeof(signals));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	errno = error;
	return r;
}

/* In handlers. */
static size_t write_file(const void **data, size_t n, void *ctx)
{
	const struct stream_file *file = ctx;
	const uint8_t *bytes = *data;
	size_t done = 0;

	while (done < n) {
		ssize_t r = write_without_signal(file->fd, bytes + done,
						 n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		done += (size_t)r;
	}
	return done;
}

static int release(struct stream_file *file)
{
	int r = file->fd >= 0 ? close(file->fd) : 0, error = errno;

	munmap(file->buffer, BUFFER_BYTES);
	free(file);
	errno = error;
	return r;
}

static int close_file(void *ctx, uint8_t *buffer)
{
	(void)buffer;
	return release(ctx);
}

static void release_in_child(void *ctx)
{
	release(ctx);
}

/*
 * Fill in @opt's buffer and context, and @output, for a file at @path, which
 * is made or emptied when the profiler starts.  on_stop frees it all.  0;
 * -ENOMEM.
 */
static int write_to_file(const char *path, struct luam_sysprof_options *opt,
			 struct seam_sysprof_output *output)
{
	size_t n = strlen(path) + 1;
	struct stream_file *file = malloc(sizeof(*file) + n);
	void *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!file || buffer == MAP_FAILED) {
		free(file);
		if (buffer != MAP_FAILED)
			munmap(buffer, BUFFER_BYTES);
		return -ENOMEM;
	}
	file->fd = -1;
	file->buffer = buffer;
	memcpy(file->path, path, n);
	opt->ctx = file;
	opt->buf = buffer;
	opt->len = BUFFER_BYTES;
	*output = (struct seam_sysprof_output) {
		.open = open_file, .writer = write_file, .on_stop = close_file,
		.on_child = release_in_child, .ends_at_exit = true,
		.enough = ENOUGH_BYTES,
	};
	return 0;
}

/* ---- the functions ---- */

static int start(lua_State *L)
{
	struct luam_sysprof_options opt = { .mode = LUAM_SYSPROF_DEFAULT };
	struct seam_sysprof_output output = { .enough = SIZE_MAX };
	const char *path;

	if (lua_gettop(L) != 1 || !lua_istable(L, 1) || !parse_mode(L, &opt) ||
	    !parse_interval(L, &opt))
		return push_failure(L, PROFILE_ERRUSE);
	if (opt.mode != LUAM_SYSPROF_DEFAULT) {
		path = parse_path(L);
		if (!path)
			return push_failure(L, PROFILE_ERRUSE);
		if (write_to_file(path, &opt, &output) < 0)
			return push_failure(L, PROFILE_ERRMEM);
	}
	return push_status(L, seam_sysprof_start(L, &opt, &output));
}

static int stop(lua_State *L)
{
	int status = luaM_sysprof_stop(L);

	if (status == PROFILE_ERRRUN)
		return push(L, "profiler is not running", EINVAL);
	return push_status(L, status);
}

static int report(lua_State *L)
{
	struct luam_sysprof_counters counters;
	const uint64_t *counts = &counters.vmst_interp;

	if (luaM_sysprof_report(&counters) != PROFILE_SUCCESS)
		return push_failure(L, PROFILE_ERRUSE);
	lua_createtable(L, 0, 2);
	lua_pushnumber(L, (double)counters.samples);
	lua_setfield(L, -2, "samples");
	lua_createtable(L, 0, SEAM_N_VMSTATES);
	for (unsigned int i = 0; i < SEAM_N_VMSTATES; i++) {
		lua_pushnumber(L, (double)counts[i]);
		lua_setfield(L, -2, seam_vmstate_name(i));
	}
	lua_setfield(L, -2, "vmstate");
	return 1;
}

/* ---- the modules ---- */

static const luaL_Reg functions[] = {
	{ "start", start }, { "stop", stop }, { "report", report },
	{ NULL, NULL },
};

int luaopen_seam_sysprof(lua_State *L)
{
	const luaL_Reg *function = functions;

	lua_newtable(L);
	for (; function->name; function++) {
		lua_pushcfunction(L, function->func);
		lua_setfield(L, -2, function->name);
	}
	return 1;
}

/*
 * Set misc.sysprof.  The table is the global one, if there is one; globals are
 * read and set raw, because strict.lua and the like forbid unknown ones.
 */
int luaopen_seam_misc(lua_State *L)
{
	lua_pushliteral(L, "misc");
	lua_rawget(L, LUA_GLOBALSINDEX);
	if (!lua_istable(L, -1)) {
		lua_newtable(L);
		lua_pushliteral(L, "misc");
		lua_pushvalue(L, -2);
		lua_rawset(L, LUA_GLOBALSINDEX);
	}
	/* one table of functions in both modules */
	lua_getglobal(L, "require");
	lua_pushliteral(L, "seam.sysprof");
	lua_call(L, 1, 1);
	lua_setfield(L, -2, "sysprof");
	return 1;
}
