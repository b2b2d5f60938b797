/* SPDX-License-Identifier: MIT */
/* test_recorded_stream.c - what is recorded is what a reader finds */

#include <seam/lmisclib.h>

#include "made_up_guest.h"
#include "traced/sysprof/stream_events.h"
#include "wire/sysprof/sysprof.h"
#include "unit.h"

enum { MAX_BYTES = 1 << 16, MAX_ITEMS = 64, FRAMES = 8 };

/* ULEB128 of 10 bytes. */
#define BIG_ADDRESS	UINT64_C(0xfedcba9876543210)

static const struct made_up_function functions[] = {
	{ "@app.lua", 12, 0, 0x7f0000001000, SEAM_GUEST_FRAME_GUEST },
	{ "=(load)", 0, 0, 0x7f0000002000, SEAM_GUEST_FRAME_GUEST },
	{ "local x\nreturn \303\251", 300, 0, 0x10, SEAM_GUEST_FRAME_GUEST },
	{ "", 0, 0, BIG_ADDRESS, SEAM_GUEST_FRAME_C },
	{ "", 0, 0, 77, SEAM_GUEST_FRAME_BUILTIN },
	{ "", 14, 1, 300, SEAM_GUEST_FRAME_TRACE },
	{ "", 15, 1, 300, SEAM_GUEST_FRAME_TRACE },
};

/* An item, without what it borrows. */
struct copy {
	struct seam_sysprof_item item;
	char text[64];
	struct seam_sysprof_frame lua[FRAMES];
	uint64_t host[FRAMES];
};

static struct written {
	uint8_t bytes[MAX_BYTES];
	size_t n;
	struct copy items[MAX_ITEMS];
	size_t n_items;
} written;

static struct seam_sysprof_stream stream;
static struct seam_guest_sample sample;
static struct seam_sysprof_host host;
static uint8_t buffer[MAX_BYTES];

static size_t collect(const void **data, size_t n, void *ctx)
{
	struct written *w = ctx;

	assert_true(n <= MAX_BYTES - w->n);
	memcpy(w->bytes + w->n, *data, n);
	w->n += n;
	return n;
}

static void begin(size_t buffer_bytes)
{
	struct seam_sysprof_out out = {
		.writer = collect, .ctx = &written, .data = buffer,
		.size = buffer_bytes, .enough = SIZE_MAX,
	};

	written.n = written.n_items = 0;
	made_up_guest = (struct made_up_guest) {
		.functions = functions,
		.n_functions = SEAM_ARRAY_SIZE(functions),
	};
	host = (struct seam_sysprof_host) { { 0x401000, BIG_ADDRESS, 5 }, 3 };
	seam_sysprof_stream_begin(&stream, &out);
	seam_sysprof_stream_native(&stream.out, false, 0x400000, "main", 4);
	seam_sysprof_stream_end_symbols(&stream);
}

/* A sample of the functions @ids, which ends with 0. */
static void put(uint8_t vmstate, const uint32_t *ids, bool is_leaf_only,
		uint64_t n_ticks)
{
	made_up_guest.vmstate = vmstate;
	made_up_guest.n_ids = 0;
	while (ids[made_up_guest.n_ids])
		made_up_guest.n_ids++;
	memcpy(made_up_guest.ids, ids, made_up_guest.n_ids * sizeof(*ids));
	made_up_frames(&sample);
	seam_sysprof_stream_sample(&stream, &sample, &host, is_leaf_only,
				   n_ticks);
}

static void copy_item(struct copy *to, const struct seam_sysprof_item *item)
{
	struct seam_bytes text = item->kind == SEAM_SYSPROF_SYMBOL_CFUNC ?
				 item->cfunc.name : item->lfunc.chunk;

	*to = (struct copy) { .item = *item };
	if (item->kind == SEAM_SYSPROF_SYMBOL_LFUNC ||
	    item->kind == SEAM_SYSPROF_SYMBOL_CFUNC)
		memcpy(to->text, text.data, text.size);
	if (item->kind != SEAM_SYSPROF_SAMPLE)
		return;
	assert_true(item->n_lua <= FRAMES && item->n_host <= FRAMES);
	for (size_t i = 0; i < item->n_lua; i++)
		to->lua[i] = item->lua[i];
	for (size_t i = 0; i < item->n_host; i++)
		to->host[i] = item->host[i];
}

/* End the stream and read all of it. */
static void read_back(void)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item = { 0 };
	struct seam_err err = { 0 };
	int r;

	seam_sysprof_stream_end(&stream);
	seam_sysprof_begin(&reader, (struct seam_bytes) { written.bytes,
							  written.n });
	while ((r = seam_sysprof_next(&reader, &item, &err)) == 1) {
		assert_true(written.n_items < MAX_ITEMS);
		copy_item(&written.items[written.n_items++], &item);
	}
	assert_int_equal(r, 0);
	assert_int_equal(seam_cursor_left(&reader.cursor), 0);
	seam_sysprof_fini(&reader);
}

/* The @i-th item of a kind. */
static const struct copy *find(enum seam_sysprof_kind kind, size_t i)
{
	for (size_t k = 0; k < written.n_items; k++)
		if (written.items[k].item.kind == kind && i-- == 0)
			return &written.items[k];
	fail_msg("no item %zu of kind %d", i, kind);
	return NULL;
}

static size_t count(enum seam_sysprof_kind kind)
{
	size_t n = 0;

	for (size_t k = 0; k < written.n_items; k++)
		n += written.items[k].item.kind == kind;
	return n;
}

static void assert_frame(const struct copy *copy, size_t i, uint32_t kind,
			 uint64_t value, uint64_t line)
{
	assert_int_equal(copy->lua[i].kind, kind);
	assert_true(copy->lua[i].value == value);
	if (kind == SEAM_SYSPROF_LFUNC)
		assert_int_equal(copy->lua[i].line, line);
}

UNIT_TEST(both_stacks_are_read_back_equal)
{
	const struct copy *s;

	begin(MAX_BYTES);
	put(SEAM_VMSTATE_CFUNC, (uint32_t[]) { 4, 1, 5, 3, 2, 0 }, false, 1);
	read_back();
	s = find(SEAM_SYSPROF_SAMPLE, 0);
	assert_int_equal(s->item.vmstate, SEAM_VMSTATE_CFUNC);
	assert_int_equal(s->item.n_lua, 5);
	assert_frame(s, 0, SEAM_SYSPROF_CFUNC, BIG_ADDRESS, 0);
	assert_frame(s, 1, SEAM_SYSPROF_LFUNC, 1, 12);
	assert_frame(s, 2, SEAM_SYSPROF_FFUNC, 77, 0);
	assert_frame(s, 3, SEAM_SYSPROF_LFUNC, 3, 300);
	assert_frame(s, 4, SEAM_SYSPROF_LFUNC, 2, 0);
	assert_int_equal(s->item.n_host, 3);
	assert_memory_equal(s->host, host.pcs, 3 * sizeof(*host.pcs));
}

UNIT_TEST(a_symbol_is_before_its_first_sample_and_once)
{
	const struct copy *symbol;

	begin(MAX_BYTES);
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 1, 0 }, false, 1);
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 3, 1, 0 }, false, 1);
	read_back();
	assert_int_equal(count(SEAM_SYSPROF_SYMBOL_LFUNC), 2);
	symbol = find(SEAM_SYSPROF_SYMBOL_LFUNC, 0);
	assert_true(symbol < find(SEAM_SYSPROF_SAMPLE, 0));
	assert_true(symbol->item.is_event);
	assert_int_equal(symbol->item.lfunc.addr, 1);
	assert_string_equal(symbol->text, "@app.lua");
	assert_int_equal(symbol->item.lfunc.line, 12);
	symbol = find(SEAM_SYSPROF_SYMBOL_LFUNC, 1);
	assert_string_equal(symbol->text, "local x\nreturn \303\251");
	assert_true(symbol > find(SEAM_SYSPROF_SAMPLE, 0));
	assert_true(symbol < find(SEAM_SYSPROF_SAMPLE, 1));
	assert_string_equal(find(SEAM_SYSPROF_SYMBOL_CFUNC, 0)->text, "main");
}

UNIT_TEST(only_states_with_a_lua_stack_have_one)
{
	for (uint8_t vm = 0; vm < SEAM_VMSTATE_TRACE; vm++) {
		const struct copy *s;
		bool has_one = vm == SEAM_VMSTATE_LFUNC ||
			       vm == SEAM_VMSTATE_FFUNC ||
			       vm == SEAM_VMSTATE_CFUNC;

		begin(MAX_BYTES);
		put(vm, (uint32_t[]) { 1, 2, 0 }, false, 1);
		read_back();
		s = find(SEAM_SYSPROF_SAMPLE, 0);
		assert_int_equal(s->item.vmstate, vm);
		assert_int_equal(s->item.n_lua, has_one ? 2 : 0);
		assert_int_equal(s->item.n_host, 3);
	}
}

UNIT_TEST(a_thread_outside_of_any_vm_is_in_a_c_function)
{
	const struct copy *s;

	begin(MAX_BYTES);
	put(SEAM_VMSTATE_NONE, (uint32_t[]) { 0 }, false, 1);
	read_back();
	s = find(SEAM_SYSPROF_SAMPLE, 0);
	assert_int_equal(s->item.vmstate, SEAM_VMSTATE_CFUNC);
	assert_int_equal(s->item.n_lua, 0);
}

UNIT_TEST(a_trace_has_its_number_and_its_function)
{
	const struct copy *s;

	begin(MAX_BYTES);
	made_up_guest.trace = 300;
	put(SEAM_VMSTATE_TRACE, (uint32_t[]) { 6, 1, 0 }, false, 1);
	read_back();
	s = find(SEAM_SYSPROF_SYMBOL_TRACE, 0);
	assert_int_equal(s->item.trace.traceno, 300);
	assert_int_equal(s->item.trace.addr, 1);
	assert_int_equal(s->item.trace.line, 14);
	s = find(SEAM_SYSPROF_SAMPLE, 0);
	assert_int_equal(s->item.trace.traceno, 300);
	assert_int_equal(s->item.trace.addr, 1);
	assert_int_equal(s->item.trace.line, 12);	/* the function's */
}

/* jit.flush() lets numbers begin anew. */
UNIT_TEST(a_trace_number_that_is_used_again_is_announced_again)
{
	begin(MAX_BYTES);
	for (uint32_t i = 0; i < 4; i++) {
		made_up_guest.trace = 300;
		put(SEAM_VMSTATE_TRACE, (uint32_t[]) { 6 + i / 2, 0 }, false,
		    1);
	}
	read_back();
	assert_int_equal(count(SEAM_SYSPROF_SAMPLE), 4);
	assert_int_equal(count(SEAM_SYSPROF_SYMBOL_TRACE), 2);
	assert_int_equal(find(SEAM_SYSPROF_SYMBOL_TRACE, 1)->item.trace.line,
			 15);
}

UNIT_TEST(ticks_that_were_merged_are_as_many_samples)
{
	begin(MAX_BYTES);
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 1, 0 }, false, 3);
	made_up_guest.trace = 300;
	put(SEAM_VMSTATE_TRACE, (uint32_t[]) { 6, 0 }, false, 2);
	read_back();
	assert_int_equal(count(SEAM_SYSPROF_SAMPLE), 5);
	assert_int_equal(count(SEAM_SYSPROF_SYMBOL_LFUNC), 1);
	assert_memory_equal(find(SEAM_SYSPROF_SAMPLE, 0)->host,
			    find(SEAM_SYSPROF_SAMPLE, 2)->host,
			    3 * sizeof(host.pcs[0]));
}

UNIT_TEST(leaf_mode_has_the_top_frame_of_both_stacks)
{
	const struct copy *s;

	begin(MAX_BYTES);
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 3, 1, 2, 0 }, true, 1);
	read_back();
	s = find(SEAM_SYSPROF_SAMPLE, 0);
	assert_int_equal(s->item.n_lua, 1);
	assert_frame(s, 0, SEAM_SYSPROF_LFUNC, 3, 300);
	assert_int_equal(s->item.n_host, 1);
	assert_true(s->host[0] == host.pcs[0]);
	assert_int_equal(count(SEAM_SYSPROF_SYMBOL_LFUNC), 1);
}

UNIT_TEST(a_function_without_a_name_yet_is_announced_later)
{
	begin(MAX_BYTES);
	made_up_guest.n_functions = 0;
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 1, 0 }, false, 1);
	made_up_guest.n_functions = SEAM_ARRAY_SIZE(functions);
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 1, 0 }, false, 1);
	read_back();
	assert_int_equal(count(SEAM_SYSPROF_SYMBOL_LFUNC), 1);
	assert_true(find(SEAM_SYSPROF_SYMBOL_LFUNC, 0) >
		    find(SEAM_SYSPROF_SAMPLE, 0));
}

/* ---- buffers ---- */

static void put_some(void)
{
	put(SEAM_VMSTATE_CFUNC, (uint32_t[]) { 4, 1, 5, 3, 2, 0 }, false, 2);
	made_up_guest.trace = 300;
	put(SEAM_VMSTATE_TRACE, (uint32_t[]) { 6, 1, 0 }, false, 1);
	put(SEAM_VMSTATE_GC, (uint32_t[]) { 1, 0 }, false, 1);
	seam_sysprof_stream_end(&stream);
}

/* The stream of put_some(), written at once; its size. */
static size_t write_whole(uint8_t whole[MAX_BYTES])
{
	begin(MAX_BYTES);
	put_some();
	memcpy(whole, written.bytes, written.n);
	return written.n;
}

UNIT_TEST(a_buffer_of_any_size_makes_the_same_stream)
{
	static uint8_t whole[MAX_BYTES];
	size_t n = write_whole(whole);

	for (size_t size = 1; size <= n + 1; size++) {
		begin(size);
		put_some();
		assert_int_equal(written.n, n);
		assert_memory_equal(written.bytes, whole, n);
	}
}

struct failing {
	size_t n_calls, fails_at;
	bool ends;		/* by NULL, not by a short count */
};

static size_t write_until_failure(const void **data, size_t n, void *ctx)
{
	struct failing *failing = ctx;

	if (failing->n_calls++ != failing->fails_at)
		return n;
	errno = ENOSPC;
	if (failing->ends)
		*data = NULL;
	return failing->ends ? n : n - 1;
}

UNIT_TEST(a_writer_that_fails_is_not_called_again)
{
	for (size_t i = 0; i < 40; i++) {
		struct failing failing = { .fails_at = i / 2, .ends = i % 2 };

		begin(3);
		stream.out.writer = write_until_failure;
		stream.out.ctx = &failing;
		put_some();
		assert_int_equal(failing.n_calls, failing.fails_at + 1);
		assert_true(stream.out.is_halted);
		assert_int_equal(stream.out.saved_errno, ENOSPC);
	}
}

static size_t swap(const void **data, size_t n, void *ctx)
{
	static uint8_t buffers[2][8];
	size_t done = collect(data, n, ctx);

	memset((void *)(uintptr_t)*data, 0xee, n);
	*data = *data == buffers[0] ? buffers[1] : buffers[0];
	return done;
}

UNIT_TEST(a_writer_may_hand_back_another_buffer)
{
	static uint8_t whole[MAX_BYTES];
	size_t n = write_whole(whole);

	begin(8);
	stream.out.writer = swap;
	put_some();
	assert_int_equal(written.n, n);
	assert_memory_equal(written.bytes, whole, n);
}

/* What a crash leaves is whole records. */
UNIT_TEST(with_enough_bytes_records_are_written_whole)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item = { 0 };
	struct seam_err err = { 0 };
	size_t n = 0;

	begin(MAX_BYTES);
	stream.out.enough = 1;
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 1, 0 }, false, 1);
	put(SEAM_VMSTATE_LFUNC, (uint32_t[]) { 1, 0 }, false, 1);
	assert_int_equal(stream.out.used, 0);
	seam_sysprof_begin(&reader, (struct seam_bytes) { written.bytes,
							  written.n });
	while (seam_sysprof_next(&reader, &item, &err) == 1)
		n += item.kind == SEAM_SYSPROF_SAMPLE;
	assert_int_equal(n, 2);
	assert_int_equal(seam_cursor_left(&reader.cursor), 0);
	seam_sysprof_fini(&reader);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
