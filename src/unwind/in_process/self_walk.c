/* SPDX-License-Identifier: MIT */
/* self_walk.c - what runs in the handler; see self_walk.h */
#include "unwind/in_process/self_walk.h"

#include <errno.h>

#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_readers.h"

/*
 * The code after an entry point that has no call frame information: ld.so's
 * goes on for 100 bytes, where it calls constructors.
 */
enum { MAX_ENTRY_BYTES = 256 };

/* ---- virtual machines in this process ---- */

/*
 * The thread that adds or removes an adapter writes; handlers read.  All
 * sequentially consistent, as self_readers.h says for the images.
 */
static _Atomic(const struct seam_self_adapter *)
	adapters[SEAM_SELF_MAX_ADAPTERS];

int seam_self_add_adapter(const struct seam_self_adapter *adapter)
{
	for (size_t i = 0; i < SEAM_SELF_MAX_ADAPTERS; i++) {
		const struct seam_self_adapter *none = NULL;

		if (atomic_compare_exchange_strong(&adapters[i], &none,
						   adapter))
			return 0;
	}
	return -ENOSPC;
}

int seam_self_remove_adapter(const struct seam_self_adapter *adapter)
{
	for (size_t i = 0; i < SEAM_SELF_MAX_ADAPTERS; i++) {
		const struct seam_self_adapter *same = adapter;

		atomic_compare_exchange_strong(&adapters[i], &same, NULL);
	}
	return seam_self_unused(seam_self_retire()) ? 0 : -EBUSY;
}

/* ---- a walk ---- */

struct walking {
	struct seam_self_visit visit;
	const struct seam_self_image *last;	/* a caller is often in it */
};

static _Atomic uint64_t n_unmapped;		/* any handler increments */

static bool has_address(const struct seam_self_image *image, uint64_t addr)
{
	return addr - image->start < image->end - image->start;
}

static const struct seam_self_image *find_image(struct walking *w,
						uint64_t addr)
{
	const struct seam_self_images *images = w->visit.images;
	const struct seam_self_image *list;
	size_t n;

	if (w->last && has_address(w->last, addr))
		return w->last;
	if (!images || images->n == 0)
		return NULL;
	/* the last that starts at or before it, or the first */
	list = images->list;
	for (n = images->n; n > 1; ) {
		size_t half = n / 2;

		list += list[half].start <= addr ? half : 0;
		n -= half;
	}
	if (!has_address(list, addr))
		return NULL;
	w->last = list;
	return list;
}

static bool find_code(void *context, uint64_t addr,
		      struct seam_unwind_code *code)
{
	struct walking *w = context;
	const struct seam_self_image *image = find_image(w, addr);

	code->adapter = NULL;
	for (size_t i = 0; w->visit.is_announced && !code->adapter &&
			   i < SEAM_SELF_MAX_ADAPTERS; i++) {
		const struct seam_self_adapter *a = atomic_load(&adapters[i]);

		if (a && a->has_code(a->adapter.context, addr, image != NULL))
			code->adapter = &a->adapter;
	}
	if (!image)
		return code->adapter != NULL;
	if (image->table) {
		code->rules = &image->table->rules;
		code->id = seam_unwind_table_find(image->table,
						  addr - image->bias);
	}
	code->is_entry = image->entry && code->id == SEAM_UNWIND_NO_CFI &&
			 addr - image->entry < MAX_ENTRY_BYTES;
	return true;
}

static size_t copy_code_before(void *context, uint64_t addr, uint8_t *bytes)
{
	uint64_t from = addr - SEAM_UNWIND_CALL_BYTES;
	uint64_t page = (addr - 1) & ~(uint64_t)(SEAM_SELF_PAGE - 1);
	size_t skipped = from < page ? (size_t)(page - from) : 0;
	size_t size = SEAM_UNWIND_CALL_BYTES - skipped;

	(void)context;
	/* the page before may not be mapped */
	if (skipped && seam_self_read(from, bytes, SEAM_UNWIND_CALL_BYTES) ==
		       SEAM_UNWIND_CALL_BYTES)
		return SEAM_UNWIND_CALL_BYTES;
	return seam_self_read(from + skipped, bytes + skipped, size) == size ?
	       size : 0;
}

/* The order of registers in a context, by column. */
static void take_registers(const ucontext_t *context,
			   struct seam_unwind_registers *regs)
{
	static const uint8_t order[SEAM_X86_64_COLUMNS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP,
		REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13,
		REG_R14, REG_R15, REG_RIP,
	};

	for (int i = 0; i < SEAM_X86_64_COLUMNS; i++)
		regs->value[i] =
			(uint64_t)context->uc_mcontext.gregs[order[i]];
	regs->known = (UINT64_C(1) << SEAM_X86_64_COLUMNS) - 1;
}

/* Apart, so that what it has on the stack is above the walk's. */
static void walk_with(struct walking *walking, const ucontext_t *context,
		      struct seam_unwind_stack *stack)
{
	const struct seam_unwind_space space = {
		.find = find_code, .code_before = copy_code_before,
		.context = walking };
	struct seam_unwind_registers regs;
	struct seam_self_memory memory;

	take_registers(context, &regs);
	seam_self_memory_init(&memory,
			      (uint64_t)(uintptr_t)__builtin_frame_address(0),
			      regs.value[SEAM_X86_64_RSP], &context->uc_stack,
			      seam_self_thread.stack);
	seam_unwind_walk(&space, &memory.memory, &regs, stack);
}

void seam_self_walk(const ucontext_t *context, struct seam_unwind_stack *stack)
{
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	struct walking walking = { .last = NULL };
	int saved_errno = errno;

	walking.visit = seam_self_enter(here, &context->uc_stack);
	walk_with(&walking, context, stack);
	seam_self_leave(&walking.visit);
	/* the whole stack is here: nothing was copied of it */
	if (stack->end == SEAM_UNWIND_TRUNCATED)
		stack->end = SEAM_UNWIND_UNREADABLE;
	if (stack->end == SEAM_UNWIND_NO_MAPPING)
		/* relaxed: a count */
		atomic_fetch_add_explicit(&n_unmapped, 1,
					  memory_order_relaxed);
	errno = saved_errno;
}

uint64_t seam_self_n_unmapped(void)
{
	return atomic_load_explicit(&n_unmapped, memory_order_relaxed);
}
