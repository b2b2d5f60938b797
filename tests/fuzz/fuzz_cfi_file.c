/* SPDX-License-Identifier: MIT */
/*
 * fuzz_cfi_file.c - any bytes as an ELF file whose code is unwound
 *
 * The input is the file, and its second half the stack, with registers from
 * its last bytes.  From the file to a stack: cfi_file, rows, walk.  Oracle:
 * ids are in the pool of rules, and the same when they are asked for again;
 * what is compiled is bounded by the sections; a walk ends with a reason; a
 * frame is in an executable segment, the first and the last excepted; no frame
 * is below the one before, but through signal frames.
 */
#include "fuzz.h"
#include "symbol/elf/cfi_file.h"
#include "unwind/compile/cfi_rows.h"
#include "unwind/walk/walk.h"

enum { STACK_ADDR = 0x7f000000, MAX_FRAMES = 128 };

struct one {
	struct seam_cfi_file file;
	struct seam_unwind_rows rows;
};

static bool is_code(const struct seam_cfi_file *file, uint64_t addr)
{
	for (size_t i = 0; i < file->segments.n; i++) {
		const struct seam_segment *s = &file->segments.items[i];

		if (s->is_executable && addr - s->addr < s->size)
			return true;
	}
	return false;
}

static bool find(void *context, uint64_t addr, struct seam_unwind_code *code)
{
	struct one *one = context;

	if (!is_code(&one->file, addr))
		return false;
	code->rules = &one->rows.rules;
	code->id = seam_unwind_rows_find(&one->rows, addr);
	if ((code->id > SEAM_UNWIND_BAD_CFI &&
	     code->id >= one->rows.rules.rules.n) ||
	    code->id != seam_unwind_rows_find(&one->rows, addr))
		abort();
	code->is_entry = seam_cfi_file_is_entry(&one->file, addr);
	return true;
}

static size_t code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	struct one *one = context;

	return seam_cfi_file_code_before(&one->file, addr, bytes,
					 SEAM_UNWIND_CALL_BYTES);
}

static void check_stack(const struct one *one,
			const struct seam_unwind_stack *stack)
{
	const struct seam_unwind_frame *frames = stack->frames;

	if (stack->end == SEAM_UNWIND_CALLER || stack->n == 0)
		abort();
	for (size_t i = 1; i < stack->n; i++) {
		if (i + 1 < stack->n &&
		    !is_code(&one->file, frames[i].pc -
			     !frames[i].is_interrupted))
			abort();
		if (!frames[i].is_interrupted &&
		    frames[i].sp < frames[i - 1].sp)
			abort();
	}
}

static void walk(struct one *one, const uint8_t *data, size_t size)
{
	const struct seam_unwind_space space = {
		.find = find, .code_before = code_before, .context = one,
	};
	const struct seam_unwind_memory memory = {
		.stack = data + size / 2, .stack_addr = STACK_ADDR,
		.stack_bytes = size - size / 2,
	};
	struct seam_unwind_registers regs = { .known = 0x1ffff };
	struct seam_unwind_frame frames[MAX_FRAMES];
	struct seam_unwind_stack stack = {
		.frames = frames, .max = MAX_FRAMES,
	};

	for (size_t i = 0; i < SEAM_X86_64_COLUMNS; i++)
		regs.value[i] = STACK_ADDR + data[size - 1 - i];
	for (size_t i = 0; i < one->file.segments.n; i++) {
		const struct seam_segment *s = &one->file.segments.items[i];

		regs.value[SEAM_X86_64_RIP] = s->addr +
			(data[size - 18] | (uint64_t)data[size - 19] << 8);
		seam_unwind_walk(&space, &memory, &regs, &stack);
		check_stack(one, &stack);
	}
}

/* Many addresses, so that functions are compiled until they are refused. */
static void look_up(struct one *one)
{
	for (size_t i = 0; i < one->file.segments.n; i++)
		for (uint64_t k = 0; k < 256; k++)
			seam_unwind_rows_find(&one->rows,
				one->file.segments.items[i].addr + 8 * k);
	if (one->rows.functions.starts.n > one->file.eh.entries.size +
	    (1 << 20) + 2 * one->rows.functions.list.n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct one one;

	if (size < 64)
		return 0;
	if (seam_cfi_file_open_image(&one.file, (struct seam_bytes) {
			data, size }, NULL) < 0)
		return 0;
	if (seam_unwind_rows_init(&one.rows, &one.file.eh,
				  &one.file.debug) == 0) {
		look_up(&one);
		walk(&one, data, size);
	}
	seam_unwind_rows_fini(&one.rows);
	seam_cfi_file_close(&one.file);
	return 0;
}
