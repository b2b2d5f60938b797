/* SPDX-License-Identifier: MIT */
/* dump_symbols.c - print addresses with their frames; see dump_symbols.h */
#include "cli/commands/dump_symbols.h"

#include <elf.h>
#include <linux/perf_event.h>

#include "wire/perf/perf_sample.h"

/*
 * The stack of the next record; SEAM_NONE if it has no sample.  A record may
 * have several samples (one per counter), all with the same stack.
 */
static uint32_t next_stack(struct seam_dump_symbols *d)
{
	const struct seam_samples *s = &d->profile->samples;
	uint32_t record = d->record++;

	while (d->next < s->n && s->record[d->next] < record)
		d->next++;
	return d->next < s->n && s->record[d->next] == record ?
	       s->stack[d->next] : SEAM_NONE;
}

static const struct seam_frame *frame_of(const struct seam_profile *profile,
					 uint32_t stack)
{
	return &profile->frames.items[profile->stacks.items[stack].frame];
}

static void put_place(const struct seam_profile *profile, struct seam_json *j,
		      const struct seam_frame *frame)
{
	const struct seam_function *function =
		&profile->functions.items[frame->function];

	seam_json_string(j, "layer",
			 seam_layer_names[function->layer]);
	seam_json_string(j, "symbol", seam_profile_text(profile,
							function->name));
	seam_json_string(j, "module", seam_profile_path(profile,
							function->module));
	seam_json_string(j, "file", frame->file ?
			 seam_profile_text(profile, frame->file) : NULL);
	seam_json_u64(j, "line", frame->line);
}

/* One address: its function, and the calls inlined into that. */
static uint32_t put_entry(const struct seam_profile *profile,
			  struct seam_json *j, uint32_t stack)
{
	uint32_t outer = stack;

	while (outer && frame_of(profile, outer)->is_inlined)
		outer = profile->stacks.items[outer].parent;
	if (!outer)
		return 0;
	put_place(profile, j, frame_of(profile, outer));
	if (outer != stack) {
		seam_json_open(j, "inlined", '[');
		for (; stack != outer;
		     stack = profile->stacks.items[stack].parent) {
			seam_json_open(j, NULL, '{');
			put_place(profile, j, frame_of(profile, stack));
			seam_json_close(j);
		}
		seam_json_close(j);
	}
	return profile->stacks.items[outer].parent;
}

/* Whether the user part of the stack is of the sample's copy of it. */
static bool is_unwound(const struct seam_profile *profile,
		       const struct seam_perf_sample *sample)
{
	uint64_t columns[SEAM_PERF_X86_64_COLUMNS], known;

	return sample->user_stack.size > 0 &&
	       (profile->elf_machine == EM_X86_64 ||
		profile->elf_machine == EM_NONE) &&
	       seam_perf_registers_x86_64(&sample->user_regs, columns, &known);
}

/* The addresses of the record; returns what is left of @stack. */
static uint32_t put_recorded(const struct seam_profile *profile,
			     struct seam_json *j,
			     const struct seam_perf_sample *sample,
			     uint32_t stack)
{
	bool is_kept = is_unwound(profile, sample), has_name = true;

	for (size_t i = 0; i < sample->callchain.n; i++) {
		uint64_t ip = seam_perf_u64(&sample->callchain, i);

		if (ip == (uint64_t)PERF_CONTEXT_USER)
			has_name = !is_kept;
		seam_json_open(j, NULL, '{');
		seam_json_u64(j, "ip", ip);
		if (ip < (uint64_t)PERF_CONTEXT_MAX && stack && has_name)
			stack = put_entry(profile, j, stack);
		seam_json_close(j);
	}
	return is_kept ? stack : 0;
}

void seam_dump_symbols_chain(void *context, struct seam_json *j,
			     const struct seam_perf_sample *sample)
{
	struct seam_dump_symbols *d = context;
	uint32_t stack = next_stack(d);

	if (!j)
		return;
	stack = put_recorded(d->profile, j, sample,
			     stack == SEAM_NONE ? 0 : stack);
	while (stack) {
		seam_json_open(j, NULL, '{');
		seam_json_bool(j, "unwound", true);
		stack = put_entry(d->profile, j, stack);
		seam_json_close(j);
	}
}
