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

static void spin(lua_State *L)
{
	CHECK(!luaL_dostring(L, "local t = os.clock() "
				"while os.clock() - t < 0.1 do end"));
}

static void as_in_the_rfc(lua_State *L)
{
	struct luam_sysprof_config config = { writer, on_stop, NULL };
	struct file *file = open_file("rfc_program.bin");
	struct luam_sysprof_options opt = {
		.mode = LUAM_SYSPROF_CALLGRAPH, .interval = 1,
		.buf = file->buf, .len = sizeof(file->buf), .ctx = file,
	};
	struct luam_sysprof_counters counters;

	CHECK(luaM_sysprof_configure(&config) == SYSPROF_SUCCESS);
	CHECK(luaM_sysprof_start(L, &opt) == SYSPROF_SUCCESS);
	spin(L);
	CHECK(luaM_sysprof_stop(L) == SYSPROF_SUCCESS);
	CHECK(luaM_sysprof_report(&counters) == SYSPROF_SUCCESS);
	CHECK(counters.samples >= 80);
}

static void as_in_the_implementation(lua_State *L)
{
	struct file *file = open_file("rfc_program.bin");
	struct luam_Sysprof_Options opt = {
		.mode = LUAM_SYSPROF_LEAF, .interval = 1,
		.buf = file->buf, .len = sizeof(file->buf), .ctx = file,
	};
	struct luam_Sysprof_Counters counters;

	CHECK(luaM_sysprof_set_writer(writer) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_set_on_stop(on_stop) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_start(L, &opt) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_start(L, &(struct luam_Sysprof_Options) {
		.mode = 0x40, .ctx = open_file("/dev/null") }) ==
	      PROFILE_ERRRUN);
	spin(L);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_report(&counters) == PROFILE_SUCCESS);
	CHECK(counters.samples >= 80);
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
