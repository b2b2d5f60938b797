/* SPDX-License-Identifier: MIT */
/*
 * rfc_program.c - a program as the RFC describes it, and then once more as the
 * implementation spells it; it includes what they include
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lmisclib.h>
#include <lua.h>
#include <lualib.h>

#define CHECK(truth)							\
	do {								\
		if (!(truth)) {						\
			printf("not ok 1 - line %d: %s\n", __LINE__, #truth); \
			exit(1);					\
		}							\
	} while (0)

struct file {
	int fd;
	uint8_t buf[1 << 16];
};

static size_t writer(const void **data, size_t len, void *ctx)
{
	struct file *file = ctx;
	ssize_t n = write(file->fd, *data, len);

	if (n < 0)
		*data = NULL;
	return n < 0 ? 0 : (size_t)n;
}

static int on_stop(void *ctx, uint8_t *buf)
{
	struct file *file = ctx;
	int fd = file->fd;

	(void)buf;
	free(file);
	return close(fd);
}

static struct file *open_file(const char *path)
{
	struct file *file = malloc(sizeof(*file));

	CHECK(file);
	file->fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	CHECK(file->fd >= 0);
	return file;
}

static void profile(lua_State *L, struct luam_sysprof_options opt)
{
	struct file *file = opt.ctx;
	struct luam_sysprof_counters counters;

	opt.interval = 1;
	opt.buf = file->buf;
	opt.len = sizeof(file->buf);
	CHECK(luaM_sysprof_start(L, &opt) == SYSPROF_SUCCESS);
	CHECK(luaM_sysprof_start(L, &(struct luam_Sysprof_Options) {
		.mode = 0x40, .ctx = open_file("/dev/null") }) ==
	      PROFILE_ERRRUN);
	CHECK(!luaL_dostring(L, "local t = os.clock() "
				"while os.clock() - t < 0.1 do end"));
	CHECK(luaM_sysprof_stop(L) == SYSPROF_SUCCESS);
	CHECK(luaM_sysprof_report(&counters) == SYSPROF_SUCCESS);
	CHECK(counters.samples >= 80);
}

static void as_in_the_rfc(lua_State *L)
{
	struct luam_sysprof_config config = { writer, on_stop, NULL };

	CHECK(luaM_sysprof_configure(&config) == SYSPROF_SUCCESS);
	profile(L, (struct luam_sysprof_options) {
		.mode = LUAM_SYSPROF_CALLGRAPH,
		.ctx = open_file("rfc_program.bin") });
}

static void as_in_the_implementation(lua_State *L)
{
	struct luam_Sysprof_Counters counters;

	CHECK(luaM_sysprof_set_writer(writer) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_set_on_stop(on_stop) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_SUCCESS);
	profile(L, (struct luam_Sysprof_Options) {
		.mode = LUAM_SYSPROF_LEAF,
		.ctx = open_file("rfc_program.bin") });
	CHECK(luaM_sysprof_report(&counters) == PROFILE_SUCCESS);
}

int main(void)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	as_in_the_rfc(L);
	as_in_the_implementation(L);
	lua_close(L);
	unlink("rfc_program.bin");
	puts("ok 1 - programs for the RFC and the implementation run\n1..1");
	return 0;
}
