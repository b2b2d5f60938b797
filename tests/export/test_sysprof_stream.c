/* SPDX-License-Identifier: MIT */
/* test_sysprof_stream.c - a profile as a sysprof stream, read again */
#include "export/exporter.h"

#include "../model/built.h"
#include "../sysprof_made.h"
#include "model/sysprof/load_sysprof.h"
#include "unit.h"

static char said[4096];
static uint64_t n_skipped;

__attribute__((format(printf, 1, 2)))
static void say(const char *fmt, ...)
{
	size_t used = strlen(said);
	va_list args;

	va_start(args, fmt);
	vsnprintf(said + used, sizeof(said) - used, fmt, args);
	va_end(args);
}

static uint64_t from_ns;	/* of the selection */

static int write_as(const struct seam_profile *p, const char *format,
		    struct seam_file *file, struct seam_err *err)
{
	struct seam_selection selection;
	struct seam_selected s;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int r;

	seam_selection_init(&selection);
	selection.from_ns = from_ns;
	assert_int_equal(seam_selected_init(&s, p, &selection, NULL), 0);
	r = seam_exporter_find(format)->write(&(struct seam_export) {
		.out = out, .selected = &s, .group = SEAM_GROUP_VMSTATE,
		.say = say, .n_skipped = &n_skipped }, err);
	fclose(out);
	seam_selected_fini(&s);
	*file = (struct seam_file) { .bytes = { (uint8_t *)text, size } };
	return r;
}

static void add(struct seam_profile *p, enum seam_vmstate state,
		const char *stack)
{
	built_add(p, 1, "app", stack);
	assert_true(seam_samples_set_vmstate(&p->samples, p->samples.n - 1,
					     state));
}

/* Write @p as a stream, and what is read from that as folded stacks. */
static void check(struct seam_profile *p, const char *expected)
{
	struct seam_file stream, folded;
	struct seam_profile again;
	struct seam_err err = { 0 };

	said[0] = '\0';
	assert_int_equal(write_as(p, "sysprof", &stream, &err), 0);
	assert_int_equal(seam_profile_init(&again), 0);
	if (seam_load_sysprof(&again, &stream, false, &err))
		fail_msg("%s", err.cause[0]);
	assert_int_equal(again.losses.n, 0);
	assert_int_equal(write_as(&again, "folded", &folded, &err), 0);
	if (folded.bytes.size != strlen(expected) ||
	    memcmp(folded.bytes.data, expected, folded.bytes.size) != 0)
		fail_msg("%.*s", (int)folded.bytes.size,
			 (const char *)folded.bytes.data);
	seam_file_close(&folded);
	seam_profile_fini(&again);
}

UNIT_TEST(stacks_are_those_of_the_profile)
{
	struct seam_profile p = built();

	add(&p, SEAM_VMSTATE_LFUNC, "main;lua_pcall;app.lua:0@app.lua_[g];"
	    "fib app.lua:12@app.lua_[g]");
	add(&p, SEAM_VMSTATE_CFUNC, "main;lua_pcall;app.lua:0@app.lua_[g]");
	add(&p, SEAM_VMSTATE_FFUNC, "main;lua_pcall;string.rep@[vm]_[g]");
	add(&p, SEAM_VMSTATE_LFUNC, "main;lua_pcall;[string \"a...\"]#2:3"
	    "@[string \"a...\"]#2_[g]");
	add(&p, SEAM_VMSTATE_GC, "main;lua_pcall;lj_gc_step;read_[k]");
	add(&p, SEAM_VMSTATE_INTERP, "");
	check(&p, "CFUNC;main;lua_pcall;app.lua:0_[g] 1\n"
	      "FFUNC;main;lua_pcall;string.rep:0_[g] 1\n"
	      "GC;main;lua_pcall;lj_gc_step;read 1\n"
	      "INTERP 1\n"
	      "LFUNC;main;lua_pcall;[string \"a...\"]#2:3_[g] 1\n"
	      "LFUNC;main;lua_pcall;app.lua:0_[g];app.lua:12_[g] 1\n");
	assert_non_null(strstr(said, "left out: names of Lua functions, which "
			       "are chunk and line in a stream (1)"));
	assert_non_null(strstr(said, "left out: times"));
	assert_null(strstr(said, "samples without"));
	assert_int_equal(n_skipped, 0);
	seam_profile_fini(&p);
}

UNIT_TEST(a_trace_has_its_number_and_function)
{
	struct seam_profile p = built();

	add(&p, SEAM_VMSTATE_TRACE, "main;lua_pcall;app.lua:0@app.lua_[g];"
	    "app.lua:12@app.lua_[g];"
	    "TRACE [7] started at app.lua:14@[jit]_[j]");
	check(&p, "TRACE;app.lua:12_[g];"
	      "TRACE [7] started at app.lua:14_[j] 1\n");
	assert_non_null(strstr(said, "has no stack (2)"));
	assert_non_null(strstr(said, "has no Lua stack (1)"));
	seam_profile_fini(&p);
	/* of two traces it is the inner one */
	p = built();
	add(&p, SEAM_VMSTATE_TRACE, "app.lua:12@app.lua_[g];"
	    "TRACE [7] started at app.lua:14@[jit]_[j];"
	    "TRACE [8] started at app.lua:15@[jit]_[j]");
	check(&p, "TRACE;app.lua:12_[g];"
	      "TRACE [8] started at app.lua:15_[j] 1\n");
	seam_profile_fini(&p);
}

UNIT_TEST(what_a_stream_cannot_hold_is_counted)
{
	struct seam_profile p = built();

	built_add(&p, 1, "app", "main;poll");
	built_add(&p, 1, "app", "main;poll");
	add(&p, SEAM_VMSTATE_GC, "main;app.lua:0@app.lua_[g];gc");
	check(&p, "GC;main;gc 1\n");
	assert_int_equal(n_skipped, 2);
	assert_non_null(strstr(said, "samples without a VM state (2)"));
	assert_non_null(strstr(said, "has no Lua stack (1)"));
	seam_profile_fini(&p);
}

UNIT_TEST(a_chunk_is_a_file_or_a_text)
{
	struct seam_profile p = built();
	struct seam_file stream;
	struct seam_err err = { 0 };
	struct seam_bytes *b = &stream.bytes;

	add(&p, SEAM_VMSTATE_LFUNC, "a.lua:1@a.lua_[g];"
	    "[string \"x\"]:2@[string \"x\"]_[g]");
	assert_int_equal(write_as(&p, "sysprof", &stream, &err), 0);
	assert_non_null(memmem(b->data, b->size, "\6@a.lua", 7));
	assert_non_null(memmem(b->data, b->size, "\15=[string \"x\"]", 14));
	seam_file_close(&stream);
	seam_profile_fini(&p);
}

UNIT_TEST(a_recording_without_a_vm_is_refused)
{
	struct seam_profile p = built();
	struct seam_err err = { 0 };
	struct seam_file file;

	built_add(&p, 1, "app", "main");
	assert_int_equal(write_as(&p, "sysprof", &file, &err), -ENOTSUP);
	assert_non_null(strstr(err.cause[0], "no sample has a VM state"));
	seam_file_close(&file);
	seam_profile_fini(&p);
}

/* A stream of @n samples. */
static struct seam_file stream_of(int n)
{
	struct seam_sysprof_buffer b = made_begin();

	made_cfunc(&b, 0x1000, "lua_pcall", false);
	made_profile(&b);
	for (int i = 0; i < n; i++)
		made_sample(&b, SEAM_VMSTATE_GC, "", "1010");
	made_end(&b);
	return made_file(&b);
}

UNIT_TEST(a_file_that_grew_gives_the_samples_that_were_read)
{
	struct seam_profile p, again;
	struct seam_file file = stream_of(3), grown = stream_of(10000), copy;
	struct seam_sysprof_source *source;
	struct seam_err err = { 0 };

	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_sysprof(&p, &file, false, &err), 0);
	/* p.sysprof is const: its owner is not */
	source = p.owned.items[p.owned.n - 1].object;
	assert_ptr_equal(source, p.sysprof);
	seam_file_close(&source->file);
	source->file = grown;
	assert_int_equal(write_as(&p, "sysprof", &copy, &err), 0);
	assert_int_equal(seam_profile_init(&again), 0);
	assert_int_equal(seam_load_sysprof(&again, &copy, false, &err), 0);
	assert_int_equal(again.samples.n, 3);
	assert_int_equal(again.losses.n, 0);
	seam_profile_fini(&again);
	seam_profile_fini(&p);
}

UNIT_TEST(a_copy_has_the_samples_that_are_selected)
{
	struct seam_profile p, again;
	struct seam_file file = stream_of(3), copy;
	struct seam_err err = { 0 };

	assert_int_equal(seam_profile_init(&p), 0);
	assert_int_equal(seam_load_sysprof(&p, &file, false, &err), 0);
	p.samples.time_ns[1] = 5;
	from_ns = 5;
	assert_int_equal(write_as(&p, "sysprof", &copy, &err), 0);
	from_ns = 0;
	assert_int_equal(seam_profile_init(&again), 0);
	assert_int_equal(seam_load_sysprof(&again, &copy, false, &err), 0);
	assert_int_equal(again.samples.n, 1);
	seam_profile_fini(&again);
	seam_profile_fini(&p);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
