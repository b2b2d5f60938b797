/* SPDX-License-Identifier: MIT */
/* test_batch_build.c - profiles into batches: windows, days, names, memory */
#include "fleet/batch_build.h"

#include "../model/built.h"
#include "fleet/batch_sum.h"
#include "model/fleet/load_batch.h"
#include "no_memory.h"
#include "unit.h"
#include "wire/fleet/batch_file.h"

/* 2026-11-24 00:00 UTC */
#define DAY_NS (UINT64_C(1795478400) * SEAM_NS_PER_S)

/* Batches that a builder gave, as files. */
struct taken {
	struct seam_native_buffer files[8];
	size_t n;
};

static int take(void *context, const struct seam_batch *batch,
		struct seam_err *err)
{
	struct taken *t = context;

	assert_true(t->n < SEAM_ARRAY_SIZE(t->files));
	return seam_batch_file_write(batch, &t->files[t->n++], err);
}

static struct seam_bytes file_of(const struct taken *t, size_t i)
{
	return (struct seam_bytes) { t->files[i].bytes.items,
				     t->files[i].bytes.n };
}

static void free_taken(struct taken *t)
{
	while (t->n)
		free(t->files[--t->n].bytes.items);
}

static const char *const labels[] = { "zone=b", "app=a" };

static const struct seam_fleet_source source = {
	.service = "web", .host = "host-1", .labels = labels, .n_labels = 2,
};

/* @profiles as the steps of one recording, whose times are from DAY_NS on. */
static int build(struct taken *t, struct seam_profile *profiles, size_t n,
		 struct seam_err *err)
{
	struct seam_fleet_build *b;
	int r = seam_fleet_build_begin(&b, &source, (struct seam_batch_id) {
				       7, 3 }, take, t, err);

	for (size_t i = 0; !r && i < n; i++)
		r = seam_fleet_build_add(b, &profiles[i], (int64_t)DAY_NS, err);
	if (!r)
		r = seam_fleet_build_lost(b, DAY_NS + 1, "ring full",
					  "cpu-clock", 5, 0, err);
	if (!r)
		r = seam_fleet_build_flush(b, err);
	seam_fleet_build_free(b);
	return r;
}

static struct seam_batch batch_of(const struct taken *t, size_t i)
{
	struct seam_batch batch;

	assert_int_equal(seam_batch_file_read(&batch, file_of(t, i), NULL), 0);
	return batch;
}

static const char *text(const struct seam_batch *b, uint32_t string)
{
	return seam_strings_get(&b->strings, string);
}

#define S(s) ((uint64_t)(s) * SEAM_NS_PER_S)

UNIT_TEST(equal_samples_of_a_window_are_one_row)
{
	struct seam_profile p = built();
	struct taken t = { 0 };
	struct seam_batch b;

	built_add(&p, S(3), "app", "main;work");
	built_add(&p, S(9), "app", "main;work");
	built_add(&p, S(9), "app", "main;rest");
	built_add(&p, S(10), "app", "main;work");
	assert_int_equal(build(&t, &p, 1, NULL), 0);
	assert_int_equal(t.n, 1);
	b = batch_of(&t, 0);
	assert_int_equal(b.samples.n, 3);
	assert_int_equal(b.frames.n, 3);
	assert_int_equal(b.stacks.n, 2);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(b.samples.items[i].value,
				 1000 * b.samples.items[i].count);
	assert_int_equal(b.samples.items[2].ts_ns, DAY_NS + S(10));
	assert_int_equal(b.from_ns, DAY_NS);
	assert_int_equal(b.to_ns, DAY_NS + S(20));
	assert_int_equal(b.id.agent, 7);
	assert_int_equal(b.id.seq, 3);
	/* labels are in order */
	assert_string_equal(text(&b, b.labels.items[0]), "app=a");
	assert_int_equal(b.losses.items[0].records, 5);
	seam_batch_fini(&b);
	free_taken(&t);
	seam_profile_fini(&p);
}

UNIT_TEST(steps_whose_ids_differ_add_up)
{
	struct seam_profile steps[] = { built(), built() };
	struct taken t = { 0 };
	struct seam_batch b;

	built_add(&steps[0], S(3), "app", "main;work");
	built_add(&steps[1], S(4), "other", "main;x;y;z");
	built_add(&steps[1], S(5), "app", "main;work");
	/* what a live profile has for rows of waits */
	built_add(&steps[1], S(5), "none", "main;none");
	steps[1].samples.weight[2] = 0;
	assert_true(seam_samples_set_count(&steps[1].samples, 2, 0));
	/* the thread has its last name: the first sample is another's */
	assert_int_equal(build(&t, steps, 2, NULL), 0);
	b = batch_of(&t, 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(b.samples.n, 3);
	assert_int_equal(b.stacks.n, 2);
	seam_batch_fini(&b);
	free_taken(&t);
	seam_profile_fini(&steps[0]);
	seam_profile_fini(&steps[1]);
}

UNIT_TEST(each_day_has_a_batch_of_its_own)
{
	struct seam_profile p = built();
	struct taken t = { 0 };
	uint64_t n = 0;

	for (uint64_t i = 0; i < 6; i++)	/* not in the order of time */
		built_add(&p, (i % 2 ? S(86390) : S(86400)) + i, "app", "main");
	assert_int_equal(build(&t, &p, 1, NULL), 0);
	assert_int_equal(t.n, 3);	/* and one of the loss, at 0:00 */
	for (size_t i = 0; i < t.n; i++) {
		struct seam_batch b = batch_of(&t, i);

		assert_int_equal(b.id.seq, 3 + i);
		assert_int_equal(seam_batch_day(b.from_ns),
				 seam_batch_day(b.to_ns - 1));
		for (size_t k = 0; k < b.samples.n; k++)
			n += b.samples.items[k].count;
		/* complete by itself */
		assert_int_equal(b.frames.n, b.samples.n ? 1 : 0);
		seam_batch_fini(&b);
	}
	assert_int_equal(n, 6);
	free_taken(&t);
	seam_profile_fini(&p);
}

/* @n samples, each of a stack of its own. */
static void add_leaves(struct seam_profile *p, uint32_t n)
{
	struct seam_samples *s = &p->samples;

	built_add(p, 0, "app", "leaf");
	assert_true(seam_samples_reserve(s, n));
	for (; s->n < n; s->n++) {
		struct seam_frame frame = p->frames.items[0];

		frame.line = (uint32_t)s->n;
		s->time_ns[s->n] = 0;
		s->thread[s->n] = 0;
		s->event[s->n] = 0;
		s->cpu[s->n] = 0;
		s->comm[s->n] = s->comm[0];
		s->weight[s->n] = 1;
		s->stack[s->n] = seam_profile_stack(p, 0,
					seam_profile_frame(p, &frame));
	}
}

UNIT_TEST(a_full_batch_is_followed_by_another_complete_one)
{
	struct seam_profile p = built();
	struct taken t = { 0 };
	size_t n = 0;

	add_leaves(&p, SEAM_FLEET_MAX_ROWS + 1000);
	assert_int_equal(build(&t, &p, 1, NULL), 0);
	assert_int_equal(t.n, 2);
	for (size_t i = 0; i < t.n; i++) {
		struct seam_batch b = batch_of(&t, i);

		assert_true(b.samples.n <= SEAM_FLEET_MAX_ROWS);
		assert_int_equal(b.stacks.n, b.samples.n);
		n += b.samples.n;
		seam_batch_fini(&b);
	}
	assert_int_equal(n, SEAM_FLEET_MAX_ROWS + 1000);
	free_taken(&t);
	seam_profile_fini(&p);
}

static void add_place(struct seam_profile *p,
		      struct seam_profile_module module, const char *path,
		      const char *name, uint64_t addr)
{
	struct seam_function function = { .layer = SEAM_LAYER_NATIVE };
	struct seam_frame frame = { .code = SEAM_NONE, .addr = addr };

	module.path = built_string(p, path);
	module.pid = -1;
	frame.module = function.module = seam_profile_module(p, &module);
	function.name = built_string(p, name);
	frame.function = seam_profile_function(p, &function);
	built_add(p, 0, "app", "");
	p->samples.stack[p->samples.n - 1] =
		seam_profile_stack(p, 0, seam_profile_frame(p, &frame));
}

/* The frame with this name. */
static const struct seam_batch_frame *frame_of(const struct seam_batch *b,
					       const char *name)
{
	for (size_t i = 0; i < b->frames.n; i++)
		if (strcmp(text(b, b->frames.items[i].function), name) == 0)
			return &b->frames.items[i];
	fail_msg("no frame '%s'", name);
	return NULL;
}

UNIT_TEST(addresses_of_one_run_are_in_no_frame)
{
	struct seam_profile p = built();
	struct taken t = { 0 };
	const struct seam_batch_frame *f;
	struct seam_batch b;

	add_place(&p, (struct seam_profile_module) {
		.kind = SEAM_MODULE_KERNEL, .text_addr = 0xffffffff81000000 },
		"[kernel.kallsyms]", "[kernel.kallsyms+0xffffffff81001234]",
		0xffffffff81001234);
	add_place(&p, (struct seam_profile_module) {
		.kind = SEAM_MODULE_KERNEL_MODULE }, "[ext4]",
		"[ext4+0xffffffffc0001234]", 0xffffffffc0001234);
	add_place(&p, (struct seam_profile_module) {
		.kind = SEAM_MODULE_ANON }, "[jit node 1234]", "[jit]",
		0x7f0012345678);
	add_place(&p, (struct seam_profile_module) {
		.kind = SEAM_MODULE_FILE, .build_id_size = 2,
		.build_id = { 0xab, 0xcd } }, "/usr/bin/app", "[app+0x1234]",
		0x1234);
	assert_int_equal(build(&t, &p, 1, NULL), 0);
	b = batch_of(&t, 0);
	f = frame_of(&b, "[kernel.kallsyms+0x1234]");
	assert_int_equal(f->offset, 0x1234);
	assert_int_equal(frame_of(&b, "[ext4]")->offset, 0);
	f = frame_of(&b, "[jit]");
	assert_int_equal(f->offset, 0);
	assert_string_equal(text(&b, f->module), "[jit node]");
	f = frame_of(&b, "[app+0x1234]");
	assert_int_equal(f->offset, 0x1234);
	assert_string_equal(text(&b, f->build_id), "abcd");
	seam_batch_fini(&b);
	free_taken(&t);
	seam_profile_fini(&p);
}

UNIT_TEST(outer_frames_of_a_stack_that_is_too_deep_are_left_out)
{
	struct seam_profile p = built();
	struct taken t = { 0 };
	uint32_t stack = 0, leaf;
	char name[16];
	struct seam_batch b;

	for (int i = 0; i < 2 * SEAM_BATCH_MAX_DEPTH; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		stack = seam_profile_stack(&p, stack, built_frame(&p, name));
	}
	built_add(&p, 0, "app", "");
	p.samples.stack[0] = stack;
	assert_int_equal(build(&t, &p, 1, NULL), 0);
	b = batch_of(&t, 0);
	assert_int_equal(b.stacks.items[0].n, SEAM_BATCH_MAX_DEPTH);
	snprintf(name, sizeof(name), "f%d", 2 * SEAM_BATCH_MAX_DEPTH - 1);
	leaf = b.stacks.items[0].first + SEAM_BATCH_MAX_DEPTH - 1;
	assert_int_equal(frame_of(&b, name)->id, b.frame_ids.items[leaf]);
	seam_batch_fini(&b);
	free_taken(&t);
	seam_profile_fini(&p);
}

UNIT_TEST(names_that_cannot_be_shown_are_refused)
{
	static const char *const none[] = { "=x" }, *const no_key[] = { "x" };
	char long_name[SEAM_FLEET_MAX_NAME + 1];
	const struct seam_fleet_source bad[] = {
		{ .service = "", .host = "h" },
		{ .service = "a\033b", .host = "h" },
		{ .service = "s", .host = "a\nb" },
		{ .service = long_name, .host = "h" },
		{ .service = "s", .host = "h", .labels = none, .n_labels = 1 },
		{ .service = "s", .host = "h", .labels = no_key,
		  .n_labels = 1 },
		{ .service = "s", .host = "h", .labels = labels,
		  .n_labels = SEAM_BATCH_MAX_LABELS + 1 },
	};
	struct seam_fleet_build *b;

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(bad); i++)
		assert_int_equal(seam_fleet_build_begin(&b, &bad[i],
			(struct seam_batch_id) { 0 }, take, NULL, NULL),
			-EINVAL);
}

/* Build, write, read, add up, load.  0 or -ENOMEM. */
static int all_steps(struct seam_profile *p)
{
	const struct seam_fleet_query query = {
		.to_ns = UINT64_MAX, .keep = ~0u,
	};
	struct seam_batch batch = { 0 }, sum_of = { 0 };
	struct seam_fleet_sum sum = { .query = &query, .batch = &sum_of };
	struct seam_profile loaded = { 0 };
	struct seam_err err = { 0 };
	struct taken t = { 0 };
	int r = build(&t, p, 1, &err);

	if (!r)
		r = seam_batch_file_read(&batch, file_of(&t, 0), &err);
	if (!r)
		r = seam_fleet_sum_add(&sum, &batch, &err);
	if (!r)
		r = seam_profile_init(&loaded);
	if (!r)
		r = seam_load_batch(&loaded, file_of(&t, 0), &err);
	if (!r) {
		assert_int_equal(loaded.samples.n, batch.samples.n);
		assert_int_equal(sum_of.samples.n, batch.samples.n);
		assert_int_equal(sum_of.frames.n, batch.frames.n);
	}
	seam_profile_fini(&loaded);
	seam_fleet_sum_fini(&sum);
	seam_batch_fini(&sum_of);
	seam_batch_fini(&batch);
	free_taken(&t);
	return r;
}

UNIT_TEST(without_memory_each_step_says_so)
{
	struct seam_profile p = built();
	long n = 1;

	for (int i = 0; i < 20; i++)
		built_add(&p, S(i), i % 2 ? "app" : "other",
			  i % 3 ? "main;work" : "main;rest;read_[k]");
	for (;; n++) {
		int r;

		until_failure = n;
		r = all_steps(&p);
		if (until_failure > 0)
			break;
		/* without an index, a title may be wrong: load_batch.c */
		assert_true(r == 0 || r == -ENOMEM);
	}
	until_failure = 0;
	assert_true(n > 50);
	assert_int_equal(all_steps(&p), 0);
	seam_profile_fini(&p);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
