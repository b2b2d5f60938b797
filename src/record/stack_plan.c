/* SPDX-License-Identifier: MIT */
/* stack_plan.c - sizes and attributes of copied stacks; see stack_plan.h */
#include "record/stack_plan.h"

#ifdef __x86_64__
#include <asm/perf_regs.h>
#endif

enum {
	RING_PART = 32,		/* a copy is at most so much of its ring */
	/*
	 * From a wakeup until the recorder runs: 10 to 20 ms on a busy machine,
	 * at times more.
	 */
	BUSY_MS = 11,
	/* With many other programs; what a size beyond the usual must leave. */
	VERY_BUSY_MS = 50,
};

/*
 * Registers that unwinding needs: those that call frame information has
 * columns for.
 */
#ifdef __x86_64__
#define BIT(name) (UINT64_C(1) << PERF_REG_X86_##name)
#define REGISTERS (BIT(AX) | BIT(BX) | BIT(CX) | BIT(DX) | BIT(SI) |	\
		   BIT(DI) | BIT(BP) | BIT(SP) | BIT(IP) | BIT(R8) |	\
		   BIT(R9) | BIT(R10) | BIT(R11) | BIT(R12) | BIT(R13) | \
		   BIT(R14) | BIT(R15))
/* Of perf, whose unwinders may not do with fewer. */
#define ALL_REGISTERS (REGISTERS | BIT(FLAGS) | BIT(CS) | BIT(SS))
#else
#define REGISTERS UINT64_C(0)
#define ALL_REGISTERS UINT64_C(0)
#endif

bool seam_stack_plan_is_supported(void)
{
	return REGISTERS != 0;
}

/* Above the watermark of a quarter three quarters of a ring are free. */
static uint64_t max_hz(size_t ring_bytes, uint32_t bytes, unsigned int ms)
{
	return (uint64_t)ring_bytes * 3 / 4 / bytes * 1000 / ms;
}

uint64_t seam_stack_plan_max_hz(size_t ring_bytes, uint32_t bytes)
{
	return max_hz(ring_bytes, bytes, BUSY_MS);
}

uint32_t seam_stack_plan_bytes(size_t ring_bytes, uint64_t hz)
{
	static const struct {
		uint32_t bytes;
		unsigned int ms;	/* that three quarters of a ring last */
	} sizes[] = {
		/* compilers of the size of clang need it; rare elsewhere */
		{ 49152, VERY_BUSY_MS },
		{ 32768, BUSY_MS }, { 24576, BUSY_MS }, { 16384, BUSY_MS },
		{ 8192, BUSY_MS },
	};
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);

	for (size_t i = hz ? 0 : n - 1; i < n; i++)
		if (sizes[i].bytes <= ring_bytes / RING_PART &&
		    hz <= max_hz(ring_bytes, sizes[i].bytes, sizes[i].ms))
			return sizes[i].bytes;
	return 0;
}

void seam_stack_plan_apply(struct seam_event *event, enum seam_call_graph how,
			   uint32_t bytes)
{
	struct perf_event_attr *attr = &event->attr;

	event->is_unwound = how == SEAM_CALL_GRAPH_AUTO;
	if (how == SEAM_CALL_GRAPH_NONE)
		return;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (how == SEAM_CALL_GRAPH_FP)
		return;
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = how == SEAM_CALL_GRAPH_DWARF ?
				 ALL_REGISTERS : REGISTERS;
	attr->sample_stack_user = bytes;
	/* as perf's: readers add the user part */
	attr->exclude_callchain_user = how == SEAM_CALL_GRAPH_DWARF;
}
