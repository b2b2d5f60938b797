/* SPDX-License-Identifier: MIT */
/* sysprof_run.c - one profiler, whose stream is kept in memory */
#include "sysprof_run.h"

#include <stdatomic.h>

#include <lauxlib.h>
#include <lualib.h>

#include "wire/sysprof/sysprof.h"
#include "../unit.h"

enum { MAX_BYTES = 32 << 20 };

static const struct made_up_function functions[] = {
	{ "@app.lua", 12, 0, 0x7f0000001000, SEAM_GUEST_FRAME_GUEST },
};

struct seen seen;
lua_State *L;

uint8_t buffer[BUFFER_BYTES];

size_t write_seen(const void **data, size_t n, void *ctx)
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

int stop_seen(void *ctx, uint8_t *buf)
{
	seen.n_stopped++;
	seen.ctx = ctx;
	seen.buf = buf;
	errno = seen.on_stop_error;
	return seen.on_stop_error ? -1 : 0;
}

int set_up(void **state)
{
	static uint8_t *bytes;
	const struct luam_sysprof_config config = {
		.writer = write_seen, .on_stop = stop_seen };

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

int tear_down(void **state)
{
	if (L)
		lua_close(L);
	L = NULL;
	return 0;
}

struct luam_sysprof_options options(enum luam_sysprof_mode mode)
{
	return (struct luam_sysprof_options) {
		.mode = mode, .interval = 1, .buf = buffer,
		.len = sizeof(buffer), .ctx = &seen };
}

int start(enum luam_sysprof_mode mode)
{
	struct luam_sysprof_options opt = options(mode);

	return luaM_sysprof_start(L, &opt);
}

void sample(uint64_t n)
{
	uint64_t end = made_up_guest.n_taken + n;

	/* what the test set is seen by the handler, and the reverse */
	while (made_up_guest.n_taken < end)
		atomic_signal_fence(memory_order_seq_cst);
}

void run(enum luam_sysprof_mode mode, uint64_t n)
{
	seen.n = 0;
	assert_int_equal(start(mode), 0);
	sample(n);
	assert_int_equal(luaM_sysprof_stop(L), 0);
}

uint64_t n_samples(void)
{
	struct luam_sysprof_counters counters;

	assert_int_equal(luaM_sysprof_report(&counters), PROFILE_SUCCESS);
	return counters.samples;
}

struct stream_counts count_stream(void)
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

void assert_refused(const struct luam_sysprof_options *opt, int status)
{
	unsigned int n = seen.n_stopped;

	assert_int_equal(luaM_sysprof_start(L, opt), status);
	assert_int_equal(seen.n_stopped, n + 1);
	assert_ptr_equal(seen.ctx, opt ? opt->ctx : NULL);
	assert_ptr_equal(seen.buf, opt ? opt->buf : NULL);
}

uint64_t cpu_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void spin_ms(uint64_t ms)
{
	uint64_t end = cpu_time_ns() + ms * 1000000;

	while (cpu_time_ns() < end)
		;
}

size_t n_open(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}
