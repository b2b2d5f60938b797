/* SPDX-License-Identifier: MIT */
/*
 * test_sysprof_memory.c - sysprof streams without memory, and made to be slow
 *
 * The n-th allocation of a load fails, for n = 1, 2, ... until a load gets
 * through: it is -ENOMEM each time; LeakSanitizer sees what was forgotten.
 */
#include "model/sysprof/load_sysprof.h"

#include "../no_memory.h"
#include "../sysprof_made.h"
#include "built.h"
#include "export/exporter.h"
#include "unit.h"

/* Something of every kind. */
static struct seam_sysprof_buffer a_stream(void)
{
	struct seam_sysprof_buffer b = made_begin();

	made_cfunc(&b, 0x1000, "lua_pcall", false);
	made_cfunc(&b, 0x2000, "lj_BC_CALL", false);
	made_cfunc(&b, 0x3000, "l_apply", false);
	made_lfunc(&b, 0x10, "@a.lua", 1, false);
	made_lfunc(&b, 0x20, "text\nof a chunk", 2, false);
	made_trace(&b, 1, 0x10, 3, false);
	made_profile(&b);
	for (int i = 0; i < 40; i++) {
		char host[64];

		snprintf(host, sizeof(host), "%x 3010 2010 1010", 0x2001 + i);
		made_sample(&b, SEAM_VMSTATE_LFUNC, "L20:2 C3000 L10:1", host);
	}
	made_sample(&b, SEAM_VMSTATE_FFUNC, "F5 L30:1", "99010");
	made_trace_sample(&b, 1, 0x10, 1);
	made_lfunc(&b, 0x10, "@b.lua", 1, true);
	made_sample(&b, SEAM_VMSTATE_LFUNC, "L20:2 C3000 L10:1", "2010 1010");
	made_sample(&b, SEAM_VMSTATE_GC, "", "");
	made_end(&b);
	return b;
}

static int load(bool as_parser, size_t *n_samples)
{
	long after = until_failure;
	struct seam_sysprof_buffer b;
	struct seam_file file;
	struct seam_profile p;
	struct seam_err err = { 0 };
	int r;

	until_failure = 0;		/* not in the stream itself */
	b = a_stream();
	file = made_file(&b);
	until_failure = after;
	r = seam_profile_init(&p);
	if (!r) {
		r = seam_load_sysprof(&p, &file, as_parser, &err);
		assert_true(!r || err.n_causes > 0);
		*n_samples = p.samples.n;
		seam_profile_fini(&p);
	}
	seam_file_close(&file);
	return r;
}

UNIT_TEST(any_allocation_may_fail)
{
	for (int as_parser = 0; as_parser < 2; as_parser++) {
		size_t n_samples = 0;
		long n = 0;
		int r;

		do {
			until_failure = ++n;
			r = load(as_parser, &n_samples);
			assert_true(r == 0 || r == -ENOMEM);
			/* a note that has no memory is left out */
			assert_true(r || n_samples == 44);
		} while (until_failure <= 0 && n < 10000);
		until_failure = 0;
		assert_int_equal(r, 0);
		assert_true(n > 30);
	}
}

/* Write @p as a stream; its size. */
static int export_to(const struct seam_profile *p, size_t *size)
{
	struct seam_selection selection;
	struct seam_selected s;
	struct seam_err err = { 0 };
	long after = until_failure;
	char *text;
	FILE *out = open_memstream(&text, size);
	int r;

	until_failure = 0;		/* in the exporter alone */
	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&s, p, &selection, NULL), 0);
	until_failure = after;
	r = seam_write_sysprof(&(struct seam_export) {
		.out = out, .selected = &s }, &err);
	assert_true(!r || err.n_causes > 0);
	fclose(out);
	free(text);
	seam_selected_fini(&s);
	return r;
}

/* Fail each allocation of an export; what is written is whole. */
static void fail_each_of_export(const struct seam_profile *p)
{
	size_t want, size = 0;
	long n = 0;
	int r;

	assert_int_equal(export_to(p, &want), 0);
	do {
		until_failure = ++n;
		r = export_to(p, &size);
		assert_true(r == -ENOMEM || (r == 0 && size == want));
	} while (until_failure <= 0 && n < 10000);
	until_failure = 0;
	assert_int_equal(r, 0);
	assert_true(n > 5);
}

UNIT_TEST(any_allocation_of_an_export_may_fail)
{
	struct seam_sysprof_buffer b = a_stream();
	struct seam_file file = made_file(&b);
	struct seam_profile p;

	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_sysprof(&p, &file, false, NULL), 0);
	fail_each_of_export(&p);
	seam_profile_fini(&p);
	p = built();
	for (size_t i = 0; i < 40; i++) {
		char stack[200];

		snprintf(stack, sizeof(stack), "main;a.lua:%zu@a.lua_[g];"
			 "TRACE [%zu] started at a.lua:1@[jit]_[j]", i % 4,
			 i % 4 + 1);
		built_add(&p, i, "app", stack);
		assert_true(seam_samples_set_vmstate(&p.samples, i,
			i % 2 ? SEAM_VMSTATE_TRACE : SEAM_VMSTATE_LFUNC));
	}
	fail_each_of_export(&p);
	seam_profile_fini(&p);
}

/*
 * A sample of @n_lua Lua frames and @n_host frames of the host, joined: all Lua
 * frames are function 0x1000, all others in @host_symbol, at 0x2000.
 */
static size_t frames_of(size_t n_lua, enum seam_sysprof_frame_kind kind,
			size_t n_host, const char *host_symbol, bool as_parser)
{
	struct seam_sysprof_frame *lua = calloc(n_lua, sizeof(*lua));
	uint64_t *host = calloc(n_host, sizeof(*host));
	struct seam_sysprof_item item = {
		.kind = SEAM_SYSPROF_SYMBOL_CFUNC,
		.cfunc = { 0x1000, made_text("f") },
	};
	struct seam_joined_stack stack = { 0 };
	struct seam_profile p;
	struct seam_sysprof_names names = {
		.profile = &p, .as_parser = as_parser,
	};
	size_t n;

	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_sysprof_names_add(&names, &item), 0);
	item.cfunc = (struct seam_sysprof_cfunc) {
		0x2000, made_text(host_symbol) };
	assert_int_equal(seam_sysprof_names_add(&names, &item), 0);
	for (size_t i = 0; i < n_lua; i++)
		lua[i] = (struct seam_sysprof_frame) {
			.kind = kind, .value = 0x1000 };
	for (size_t i = 0; i < n_host; i++)
		host[i] = 0x2010;
	item = (struct seam_sysprof_item) {
		.kind = SEAM_SYSPROF_SAMPLE, .vmstate = SEAM_VMSTATE_LFUNC,
		.lua = lua, .n_lua = n_lua, .host = host, .n_host = n_host,
	};
	assert_int_equal(seam_joined_stack_make(&stack, &names, &item, 2), 0);
	n = stack.frames.n;
	seam_joined_stack_fini(&stack);
	seam_sysprof_names_fini(&names);
	seam_profile_fini(&p);
	free(lua);
	free(host);
	return n;
}

/* Without a bound the first takes a day, and the second 80 GB. */
UNIT_TEST(a_stack_made_to_be_slow_is_not)
{
	assert_true(frames_of(300000, SEAM_SYSPROF_CFUNC, 300000, "g",
			      false) >= 300000);
	assert_true(frames_of(100000, SEAM_SYSPROF_LFUNC, 100000, "lua_pcall",
			      true) <= 65536 + 200000);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
