/* SPDX-License-Identifier: MIT */
/*
 * test_guest_adapter.c - an adapter for another VM, by guest_adapter.h alone
 *
 * The VM is shaped as CPython 3.11 and PUC Lua 5.4 are: its interpreter is a
 * C function with call frame information, calls of its language are no calls
 * of C, and a call from C enters it again.
 */
#include <dlfcn.h>

#include "guest_run.h"
#include "traced/guest/guest_adapter.h"
#include "unwind/in_process/self_images.h"
#include "wire/guest/guest_decode.h"
#include "wire/guest/guest_encode.h"
#include "unit.h"

/* --- the VM --- */

enum { TOY_TAG = 0x746f7921, TOY_FRAMES = 64, TOY_STATE = 1 };

struct toy_function {
	uint32_t tag, first_line;
	char name[16];
};

struct toy_frame {
	uint32_t tag, line;
	const struct toy_function *function;
	struct toy_frame *caller;
	bool is_entry;			/* C code called it */
};

struct toy {
	struct toy_frame *top;
	struct toy_frame frames[TOY_FRAMES];
	size_t n;
};

static struct toy toy;

__attribute__((visibility("default"))) int toy_version = 1;
extern const char __start_toy_code[], __stop_toy_code[];

static const struct toy_function functions[] = {
	{ TOY_TAG, 10, "first" }, { TOY_TAG, 20, "second" },
	{ TOY_TAG, 30, "third" },
};

/* Run @n functions, each called by the one before, the last calls @native. */
__attribute__((section("toy_code"), noinline))
static int toy_run(size_t n, void (*native)(void))
{
	size_t before = toy.n;

	for (size_t i = 0; i < n; i++) {
		struct toy_frame *frame = &toy.frames[toy.n++];

		*frame = (struct toy_frame) {
			.tag = TOY_TAG, .line = functions[i].first_line + 1,
			.function = &functions[i], .caller = toy.top,
			.is_entry = i == 0 };
		toy.top = frame;
	}
	native();
	toy.n = before;
	toy.top = before ? &toy.frames[before - 1] : NULL;
	return 0;
}

/* --- its adapter --- */

struct toy_object {
	uint64_t start, end;		/* of the interpreter's code */
	const struct toy *toy;
};

static struct toy_object object;
static bool begins_unplaced, has_ids = true;
static const char *refused_because;
static size_t n_detached;

static void *attach(void *(*symbol)(void *image, const char *name),
		    void *image, char *reason, size_t size)
{
	if (!symbol(image, "toy_version"))
		return NULL;
	if (refused_because) {
		snprintf(reason, size, "%s", refused_because);
		return NULL;
	}
	object = (struct toy_object) {
		.start = (uint64_t)(uintptr_t)__start_toy_code,
		.end = (uint64_t)(uintptr_t)__stop_toy_code, .toy = &toy };
	return &object;
}

static bool prove(void *attached, char *reason, size_t size)
{
	(void)attached;
	(void)reason;
	(void)size;
	return true;
}

static void detach(void *attached)
{
	(void)attached;
	n_detached++;
}

static bool has_code(const void *attached, uint64_t pc, bool is_in_image)
{
	const struct toy_object *o = attached;

	return is_in_image && pc - o->start < o->end - o->start;
}

static enum seam_unwind_end bridge(const void *attached,
				   struct seam_guest_walk *walk,
				   struct seam_unwind_registers *regs,
				   bool is_exact)
{
	const struct toy_object *o = attached;
	uint64_t addr = (uint64_t)(uintptr_t)o->toy;

	(void)regs;
	(void)is_exact;
	return seam_guest_activate(walk, addr, addr) ?
	       SEAM_UNWIND_WITHOUT_CFI : SEAM_UNWIND_UNKNOWN_REGISTER;
}

static uint32_t id_of(struct seam_guest_walk *walk, uint64_t addr,
		      const struct toy_function *function)
{
	const struct seam_guest_key key = {
		.address = addr, .check = { function->first_line, 0 },
		.kind = SEAM_GUEST_FRAME_GUEST, .adapter = 9 };
	struct seam_guest_symbol *text = &walk->sample->text;
	bool is_nameless;
	uint32_t id = seam_guest_find(walk, &key, &is_nameless);

	if (id)
		return id;
	*text = (struct seam_guest_symbol) {
		.line = function->first_line, .n_chunk = 5, .chunk = "=toys" };
	text->n_name = (uint8_t)strnlen(function->name, sizeof(function->name));
	memcpy(text->name, function->name, text->n_name);
	return seam_guest_name(walk, &key, 0, text);
}

/* The frames of one activation; where those of the next begin. */
static uint64_t walk_activation(struct seam_guest_walk *walk, uint64_t addr)
{
	for (int i = 0; addr; i++) {
		struct seam_guest_origin origin = { .address = 0 };
		struct toy_function function;
		struct toy_frame frame;
		uint64_t at;

		if (!seam_guest_load(&walk->memory, addr, &frame,
				     sizeof(frame)) ||
		    frame.tag != TOY_TAG || i == TOY_FRAMES) {
			seam_guest_end_segment(walk, SEAM_GUEST_INVALID);
			return 0;
		}
		at = (uint64_t)(uintptr_t)frame.function;
		if (!seam_guest_load(&walk->memory, at, &function,
				     sizeof(function))) {
			seam_guest_end_segment(walk, SEAM_GUEST_UNREADABLE);
			return 0;
		}
		origin.address = at;
		origin.first_line = function.first_line;
		seam_guest_add_frame(walk, SEAM_GUEST_FRAME_GUEST,
				     has_ids ? id_of(walk, at, &function) : 0,
				     frame.line,
				     &origin);
		addr = (uint64_t)(uintptr_t)frame.caller;
		if (frame.is_entry)
			break;
	}
	return addr;
}

static void walk_all(const void *attached, struct seam_guest_walk *walk,
		     size_t first)
{
	const struct toy_object *o = attached;
	uint64_t frame = 0;

	seam_guest_load(&walk->memory, (uint64_t)(uintptr_t)&o->toy->top,
			&frame, sizeof(frame));
	for (size_t i = first; i < walk->n_activations; i++) {
		const struct seam_guest_activation *a =
			&walk->sample->activations[i];

		if (begins_unplaced && i == 0 &&
		    seam_guest_begin_segment(walk, NULL, 0)) {
			seam_guest_add_frame(walk, SEAM_GUEST_FRAME_GUEST, 7, 0,
				&(struct seam_guest_origin) { .address = 0 });
			seam_guest_end_segment(walk, SEAM_GUEST_UNSETTLED);
		}
		if (!seam_guest_begin_segment(walk, a, a->thread))
			return;
		frame = walk_activation(walk, frame);
	}
	walk->sample->head.vm = (uint64_t)(uintptr_t)o->toy;
	walk->sample->head.vmstate = TOY_STATE;
}

static const struct seam_guest_vm toy_vm = {
	.number = 9, .name = "toy",
	.symbol = "toy_version", .attach = attach, .prove = prove,
	.detach = detach, .has_code = has_code, .bridge = bridge,
	.walk = walk_all,
};

/* --- samples --- */

static struct seam_guest_sample *sample;
static size_t n_nested;
static char *title;		/* of the process: argv[0] */

static void take(void)
{
	take_here(sample);
}

static void take_nested(void)
{
	if (n_nested == 0) {
		take();
		return;
	}
	n_nested--;
	toy_run(2, take_nested);
}

static void change_images(void)
{
	void *other = dlopen("libutil.so.1", RTLD_NOW);

	assert_non_null(other);
	dlclose(other);
}

UNIT_TEST(no_object_and_no_reason_is_no_refusal)
{
	seam_guest_adapters[1] = &toy_vm;
	refused_because = "";
	assert_int_equal(seam_guest_init(), -ENOENT);
	assert_string_equal(seam_guest_refusal(), "");
}

UNIT_TEST(a_refusal_has_the_adapters_reason)
{
	refused_because = "it is a toy";
	change_images();
	assert_int_equal(seam_guest_refresh(), -ENOTSUP);
	assert_non_null(strstr(seam_guest_refusal(), ": it is a toy"));
	refused_because = NULL;
}

/* What was refused is tried again when the program has changed. */
static void use_toy(void)
{
	change_images();
	assert_int_equal(seam_guest_refresh(), 0);
	assert_int_equal(count_vms("toy"), 1);
}

UNIT_TEST(frames_are_those_of_each_activation)
{
	const struct seam_guest_sample *s = sample;
	struct seam_guest_symbol symbol;

	use_toy();
	n_nested = 1;
	toy_run(3, take_nested);
	assert_int_equal(s->head.guest_end, SEAM_GUEST_COMPLETE);
	assert_int_equal(s->head.host_end, SEAM_STACK_COMPLETE);
	assert_int_equal(s->head.adapter, 9);
	assert_int_equal(s->head.vmstate, TOY_STATE);
	assert_int_equal(s->head.n_segments, 2);
	assert_int_equal(s->segments[0].n_frames, 2);
	assert_int_equal(s->segments[1].n_frames, 3);
	assert_true(s->segments[0].join < s->segments[1].join);
	assert_int_equal(seam_guest_frame_line(s->frames[0]), 21);
	assert_int_equal(seam_guest_frame_line(s->frames[2]), 31);
	assert_int_equal(s->frames[1].id, s->frames[4].id);
	assert_int_equal(s->n_fresh, 3);
	assert_int_equal(seam_guest_describe(s->frames[2].id, &symbol), 0);
	assert_int_equal(symbol.adapter, 9);
	assert_int_equal(symbol.n_name, 5);
	assert_memory_equal(symbol.name, "third", 5);
	assert_memory_equal(symbol.chunk, "=toys", symbol.n_chunk);
	for (size_t i = 0; i < 2; i++)
		assert_in_range(s->host[s->segments[i].join].pc,
				(uintptr_t)__start_toy_code,
				(uintptr_t)__stop_toy_code);
}

static void (*damage)(void);

static void damage_and_take(void)
{
	damage();
	take();
}

static void make_cycle(void)
{
	toy.top->caller = toy.top;
}

static void make_unmapped(void)
{
	toy.top->function = (const struct toy_function *)8;
}

static void make_wild(void)
{
	toy.top = (struct toy_frame *)(uintptr_t)0x7fffffffe000;
}

static void expect_end(void (*how)(void), uint8_t end)
{
	damage = how;
	toy.top = NULL;
	toy.n = 0;
	toy_run(3, damage_and_take);
	assert_int_equal(sample->head.guest_end, end);
	assert_int_equal(sample->head.host_end, SEAM_STACK_COMPLETE);
}

UNIT_TEST(damaged_frames_end_a_segment_with_the_reason)
{
	expect_end(make_cycle, SEAM_GUEST_INVALID);
	expect_end(make_unmapped, SEAM_GUEST_UNREADABLE);
	expect_end(make_wild, SEAM_GUEST_INVALID);
}

UNIT_TEST(activations_are_walked_however_deeply_nested)
{
	toy.top = NULL;
	toy.n = 0;
	n_nested = 25;
	toy_run(2, take_nested);
	assert_int_equal(sample->head.n_segments, 26);
	assert_int_equal(sample->n_frames, 52);
	assert_int_equal(sample->head.guest_end, SEAM_GUEST_COMPLETE);
}

/* What a reader of the record makes of the sample. */
static void expect_readable(size_t n_segments, size_t n_frames)
{
	static uint8_t bytes[SEAM_GUEST_MAX_BYTES];
	struct seam_guest_reader reader;
	struct seam_guest_part part;
	struct seam_err err;
	size_t size, n = 0;

	sample->head.table = sample->head.n_ticks = 1;
	size = seam_guest_encode_sample(bytes, sizeof(bytes), &sample->head,
					sample->segments, sample->frames);
	if (seam_guest_read_sample((struct seam_bytes) { bytes, size },
				   &reader, &err) < 0)
		fail_msg("%s", err.cause[0]);
	assert_int_equal(sample->head.n_segments, n_segments);
	while (seam_guest_next_part(&reader, &part))
		n += part.segment.n_frames;
	assert_int_equal(n, n_frames);
}

UNIT_TEST(frames_without_a_place_are_those_of_the_last_segment)
{
	toy.top = NULL;
	toy.n = 0;
	n_nested = 1;
	begins_unplaced = true;
	toy_run(3, take_nested);
	begins_unplaced = false;
	assert_int_equal(sample->head.guest_end, SEAM_GUEST_UNSETTLED);
	expect_readable(2, 5);
}

UNIT_TEST(functions_that_get_no_id_leave_a_mark)
{
	toy.top = NULL;
	toy.n = 0;
	has_ids = false;
	toy_run(3, take);
	has_ids = true;
	assert_int_equal(sample->head.guest_end, SEAM_GUEST_CUT);
	assert_int_equal(sample->segments[0].end, SEAM_GUEST_CUT);
	assert_int_equal(seam_guest_frame_kind(sample->frames[1]),
			 SEAM_GUEST_FRAME_CUT);
	expect_readable(1, 3);
}

/* As servers do, by writing to the memory of their arguments. */
UNIT_TEST(a_program_that_sets_its_title_keeps_its_vm)
{
	memset(title, 'x', strlen(title));
	change_images();
	assert_int_equal(seam_guest_refresh(), 0);
	assert_int_equal(n_detached, 0);
}

UNIT_TEST(a_frame_without_an_id_is_counted_as_left_out)
{
	static struct seam_guest_sample cut;
	const struct seam_guest_origin origin = { 0 };
	struct seam_guest_walk walk = { .sample = &cut };
	const struct seam_guest_frame one_left_out =
		seam_guest_frame_make(SEAM_GUEST_FRAME_CUT, 1, 0);

	cut.head.n_segments = 1;
	assert_true(seam_guest_add_frame(&walk, SEAM_GUEST_FRAME_GUEST, 0, 5,
					 &origin));
	assert_int_equal(cut.n_frames, 1);
	assert_memory_equal(&cut.frames[0], &one_left_out,
			    sizeof(one_left_out));
	assert_int_equal(cut.segments[0].end, SEAM_GUEST_CUT);
}

int main(int argc, char **argv)
{
	(void)argc;
	title = argv[0];

	sample = new_sample();
	assert_int_equal(seam_self_init(), 0);
	seam_self_thread_begin();
	return unit_run(NULL, NULL, NULL, NULL);
}
