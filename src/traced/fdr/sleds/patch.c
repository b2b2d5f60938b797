/* SPDX-License-Identifier: MIT */
/* patch.c - live code, changed; see patch.h */
#include "traced/fdr/sleds/patch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "traced/fdr/sleds/code.h"
#include "traced/fdr/sleds/stubs.h"
#include "wire/xray/xray_chunk.h"

enum { OPCODE_CALL = 0xe8, OPCODE_JUMP = 0xe9, MOV_R10D = 0xba };

/* Of the process, by its first patch: whether code is not writable. */
static bool has_begun, by_one_byte;

/* The bytes of a sled in use: its head, and the others. */
struct form {
	uint8_t head[2];
	uint8_t n_tail;
	int8_t tail_at;		/* from the sled's address */
	uint8_t tail[SEAM_FDR_MAX_CALL_BYTES];
};

struct patch_run {
	struct seam_fdr_functions *functions;
	const struct seam_fdr_code *code;
	const void *(*target_of)(uint32_t id, enum seam_fdr_sled_kind kind);
	struct seam_fdr_patched *patched;
	struct seam_fdr_reach reach;
	struct seam_fdr_write write;
	uint8_t *steps;		/* for each sled: the next step */
	bool has_threads;
};

/* ---- forms ---- */

static void put_relative(uint8_t *to, uint64_t next, uint64_t target)
{
	int32_t distance = (int32_t)(target - next);

	memcpy(to, &distance, sizeof(distance));
}

static uint64_t relative_at(uint64_t address)
{
	int32_t distance;

	memcpy(&distance, (const void *)address, sizeof(distance));
	return address + 4 + (uint64_t)(int64_t)distance;
}

static enum seam_xray_kind action_of(uint8_t kind)
{
	switch (kind) {
	case SEAM_FDR_SLED_EXIT:
		return SEAM_XRAY_EXIT;
	case SEAM_FDR_SLED_TAIL:
		return SEAM_XRAY_TAIL_EXIT;
	case SEAM_FDR_SLED_ENTRY_ARGS:
		return SEAM_XRAY_ENTRY_ARGS;
	default:
		return SEAM_XRAY_ENTRY;
	}
}

static bool is_event(const struct seam_fdr_sled *sled)
{
	return sled->kind == SEAM_FDR_SLED_CUSTOM ||
	       sled->kind == SEAM_FDR_SLED_TYPED;
}

static bool calls_with_word(const struct seam_fdr_sled *sled)
{
	return sled->kind == SEAM_FDR_SLED_ENTRY ||
	       sled->kind == SEAM_FDR_SLED_ENTRY_ARGS ||
	       sled->kind == SEAM_FDR_SLED_TAIL;
}

static bool is_entry_stub(const struct seam_fdr_sled *sled)
{
	return sled->kind == SEAM_FDR_SLED_CALL ||
	       sled->kind == SEAM_FDR_SLED_PREFIX;
}

static uint32_t word_of(const struct patch_run *run,
			const struct seam_fdr_sled *sled)
{
	return seam_xray_word(run->functions->first_id + sled->function,
			      action_of(sled->kind));
}

/* mov $word, %r10d, or a jump over the word; call or jmp @target */
static struct form sled_form(const struct patch_run *run,
			     const struct seam_fdr_sled *sled, uint64_t target)
{
	struct form form = {
		.head = { 0x41, MOV_R10D }, .n_tail = 9, .tail_at = 2,
	};
	uint32_t word = word_of(run, sled);

	memcpy(form.tail, &word, sizeof(word));
	form.tail[4] = sled->kind == SEAM_FDR_SLED_EXIT ? OPCODE_JUMP :
							  OPCODE_CALL;
	if (by_one_byte && calls_with_word(sled))
		memcpy(form.head, "\xeb\x04", 2);
	put_relative(form.tail + 5, sled->address + SEAM_FDR_SLED_BYTES,
		     target);
	return form;
}

static struct form event_form(const struct seam_fdr_sled *sled, uint64_t target)
{
	uint8_t call = (uint8_t)seam_fdr_event_call(sled->kind);
	struct form form = {
		.head = { 0xeb, 0 }, .n_tail = 4,
		.tail_at = (int8_t)(call + 1),
	};

	put_relative(form.tail, sled->address + call + 5, target);
	return form;
}

/* A call at the end of the room, after nops or a prefix without meaning. */
static struct form call_form(const struct seam_fdr_sled *sled, uint64_t target)
{
	uint8_t bytes[SEAM_FDR_MAX_CALL_BYTES];
	size_t pad = sled->bytes - 5u;
	struct form form = {
		.n_tail = (uint8_t)(sled->bytes - 2), .tail_at = 2,
	};

	memset(bytes, 0x90, sizeof(bytes));
	if (pad == 1)
		bytes[0] = 0x67;
	else if (pad > 1)
		bytes[0] = 0x66;
	bytes[pad] = OPCODE_CALL;
	put_relative(bytes + pad + 1, sled->address + sled->bytes, target);
	memcpy(form.head, bytes, 2);
	memcpy(form.tail, bytes + 2, form.n_tail);
	return form;
}

static struct form prefix_form(const struct seam_fdr_sled *sled,
			       uint64_t target)
{
	struct form form = {
		.head = { 0xeb, (uint8_t)-(SEAM_FDR_PREFIX_BYTES + 2) },
		.n_tail = SEAM_FDR_PREFIX_BYTES,
		.tail_at = -SEAM_FDR_PREFIX_BYTES,
		.tail = { OPCODE_JUMP },
	};

	put_relative(form.tail + 1, sled->address, target);
	return form;
}

static struct form form_of(const struct patch_run *run,
			   const struct seam_fdr_sled *sled, uint64_t target)
{
	if (is_event(sled))
		return event_form(sled, target);
	if (sled->kind == SEAM_FDR_SLED_CALL)
		return call_form(sled, target);
	if (sled->kind == SEAM_FDR_SLED_PREFIX)
		return prefix_form(sled, target);
	return sled_form(run, sled, target);
}

/* The head of a sled that is not in use. */
static void free_head(const struct seam_fdr_sled *sled, uint8_t head[2])
{
	head[0] = 0xeb;
	head[1] = (uint8_t)(sled->bytes - 2);
	if (sled->kind == SEAM_FDR_SLED_EXIT) {
		/* the ret; the bytes after a ret are not executed */
		head[0] = sled->original[0];
		head[1] = MOV_R10D;
	} else if (sled->kind == SEAM_FDR_SLED_PREFIX && !sled->is_divided) {
		memcpy(head, sled->original, 2);
	}
}

/* ---- what a sled is now ---- */

/* A sled in use calls a trampoline, or a stub; gcc's, the function's stub. */
static bool is_in_use(const struct patch_run *run,
		      const struct seam_fdr_sled *sled)
{
	const uint8_t *p = (const uint8_t *)sled->address;
	struct form form;
	uint64_t target;

	if (is_entry_stub(sled)) {
		target = run->functions->stubs[sled->function];
		if (!target)
			return false;
	} else {
		target = relative_at(sled->address +
				     (is_event(sled) ?
				      seam_fdr_event_call(sled->kind) + 1 : 7));
		if (!seam_fdr_stub_is_jump(target))
			return false;
	}
	form = form_of(run, sled, target);
	return !memcmp(p, form.head, 2) &&
	       !memcmp(p + form.tail_at, form.tail, form.n_tail);
}

/* ---- the steps ---- */

enum patch_step {
	NOTHING,
	MAKE_JUMP,	/* gcc's nops; then as the next */
	WRITE_TAIL,
	WRITE_HEAD,
	DONE,
	RESTORE_TAIL,	/* the program's call of __fentry__; then its head */
	RESTORE_HEAD,
	RESTORED,
};

static const void *callee_of(const struct patch_run *run,
			     const struct seam_fdr_sled *sled)
{
	return run->target_of(run->functions->first_id + sled->function,
			      (enum seam_fdr_sled_kind)sled->kind);
}

/* What the sled is to call, as near as a call reaches; 0: nothing is near. */
static uint64_t near_target(struct patch_run *run,
			    const struct seam_fdr_sled *sled)
{
	const void *target = callee_of(run, sled);
	uint64_t *stub = &run->functions->stubs[sled->function];

	if (!is_entry_stub(sled))
		return seam_fdr_stub_jump(&run->reach, target,
					  by_one_byte && calls_with_word(sled));
	if (!*stub)
		*stub = seam_fdr_stub_entry(
				&run->reach, word_of(run, sled), target,
				sled->kind == SEAM_FDR_SLED_PREFIX ?
				sled->address + sled->bytes : 0);
	return *stub;
}

/* Whether another thread could see one byte of its head without the other. */
static bool has_split_head(const struct patch_run *run,
			   const struct seam_fdr_sled *sled)
{
	return run->write.memory >= 0 && run->has_threads &&
	       (is_entry_stub(sled) ||
		(calls_with_word(sled) && !by_one_byte));
}

/* Not in use yet, and wanted. */
static enum patch_step first_step(struct patch_run *run,
				  const struct seam_fdr_sled *sled)
{
	bool is_divided = sled->is_divided && run->has_threads &&
			  *(const uint8_t *)sled->address != 0xeb;

	if (!callee_of(run, sled))
		return NOTHING;
	if (is_divided || has_split_head(run, sled)) {
		run->patched->n_divided++;
		return NOTHING;
	}
	if (!near_target(run, sled)) {
		run->patched->n_far++;
		return NOTHING;
	}
	return sled->kind == SEAM_FDR_SLED_CALL &&
	       *(const uint8_t *)sled->address != 0xeb ? MAKE_JUMP : WRITE_TAIL;
}

static enum patch_step begin_sled(struct patch_run *run,
				  const struct seam_fdr_sled *sled)
{
	const bool *wanted = run->functions->is_wanted;
	bool is_wanted = wanted && wanted[sled->function];
	uint8_t head[2];

	/* readable: it was accepted as such, and the image is still loaded */
	if (!is_in_use(run, sled)) {
		if (!seam_fdr_sled_is_free(run->code, sled))
			run->patched->n_refused++;
		else if (is_wanted)
			return first_step(run, sled);
		return NOTHING;
	}
	if (is_wanted)
		return NOTHING;
	if (has_split_head(run, sled)) {
		run->patched->n_divided++;
		return NOTHING;
	}
	free_head(sled, head);
	seam_fdr_write_head(&run->write, sled->address, head);
	run->patched->n_unpatched++;
	/* __fentry__'s call, or call *SLOT(%rip); all others are nops */
	return sled->kind == SEAM_FDR_SLED_CALL &&
	       (sled->original[0] == OPCODE_CALL || sled->original[0] == 0xff) ?
	       RESTORE_TAIL : NOTHING;
}

/*
 * A tail of before stays, because a thread may be in the sled: it calls what
 * the sled is to call, or, of a function that had a trigger, does as well.
 */
static void write_tail(struct patch_run *run, const struct seam_fdr_sled *sled)
{
	struct form form = form_of(run, sled, near_target(run, sled));
	uint64_t at = sled->address + (uint64_t)(int64_t)form.tail_at;

	if (sled->kind == SEAM_FDR_SLED_EXIT)
		seam_fdr_write(&run->write, sled->address + 1, form.head + 1,
			       1);
	if (form.n_tail != 9 || memcmp((const void *)at, form.tail, 5) ||
	    !seam_fdr_stub_is_jump(relative_at(at + 5)))
		seam_fdr_write(&run->write, at, form.tail, form.n_tail);
}

static void take_step_of(struct patch_run *run,
			 const struct seam_fdr_sled *sled, enum patch_step step)
{
	struct form form;
	uint8_t head[2];

	switch (step) {
	case MAKE_JUMP:
		free_head(sled, head);
		seam_fdr_write_head(&run->write, sled->address, head);
		break;
	case WRITE_TAIL:
		write_tail(run, sled);
		break;
	case WRITE_HEAD:
		/* the tail is there, which the head does not depend on */
		form = form_of(run, sled, near_target(run, sled));
		seam_fdr_write_head(&run->write, sled->address, form.head);
		run->patched->n_patched++;
		break;
	case RESTORE_TAIL:
		seam_fdr_write(&run->write, sled->address + 2,
			       sled->original + 2, sled->bytes - 2u);
		break;
	case RESTORE_HEAD:
		seam_fdr_write_head(&run->write, sled->address, sled->original);
		break;
	default:
		break;
	}
}

/* Take @step of all sleds that are at @step, and sync. */
static void take_step(struct patch_run *run, enum patch_step step)
{
	const struct seam_fdr_sleds *sleds = &run->functions->sleds;
	bool is_taken = false;

	for (size_t i = 0; i < sleds->list.n; i++) {
		const struct seam_fdr_sled *sled = &sleds->list.items[i];

		if (run->steps[i] != step)
			continue;
		is_taken = true;
		take_step_of(run, sled, step);
		run->steps[i]++;
	}
	if (is_taken)
		seam_fdr_write_sync();
}

/* ---- all of a list ---- */

/* Whether other threads may run, also where that is not known. */
static bool count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	size_t n = 0;

	while (tasks && (entry = readdir(tasks)))
		n += entry->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return n != 1;
}

static void set_reach(struct patch_run *run)
{
	run->reach = (struct seam_fdr_reach) { UINT64_MAX, 0 };
	for (size_t i = 0; i < run->code->segments.n; i++) {
		const struct seam_fdr_segment *s =
			&run->code->segments.items[i];

		if (!(s->rights & PROT_EXEC))
			continue;
		if (s->start < run->reach.low)
			run->reach.low = s->start;
		if (s->end > run->reach.high)
			run->reach.high = s->end;
	}
}

/* Where stubs cannot be written, sleds of before are as they were. */
static int patch_sleds(struct patch_run *run)
{
	const struct seam_fdr_sleds *sleds = &run->functions->sleds;
	int r;

	for (size_t i = 0; i < sleds->list.n; i++)
		run->steps[i] = (uint8_t)begin_sled(run,
						    &sleds->list.items[i]);
	r = seam_fdr_stubs_write();
	if (r == 0) {
		take_step(run, MAKE_JUMP);
		take_step(run, WRITE_TAIL);
		take_step(run, WRITE_HEAD);
	}
	/* all heads of sleds that are no longer used are written */
	seam_fdr_write_sync();
	take_step(run, RESTORE_TAIL);
	take_step(run, RESTORE_HEAD);
	return r;
}

int seam_fdr_patch(struct seam_fdr_functions *functions,
		   const struct seam_fdr_code *code,
		   const void *(*target_of)(uint32_t id,
					    enum seam_fdr_sled_kind kind),
		   struct seam_fdr_patched *patched)
{
	const struct seam_fdr_sled *sleds = functions->sleds.list.items;
	const size_t n = functions->sleds.list.n;
	struct patch_run run = {
		.functions = functions, .code = code,
		.target_of = target_of, .patched = patched,
	};
	int r, e;

	if (!n)
		return 0;
	run.has_threads = count_threads();
	if (functions->is_wanted && run.has_threads &&
	    !seam_fdr_write_can_sync())
		return -ENOTSUP;
	run.steps = calloc(n, 1);
	if (!run.steps)
		return -ENOMEM;
	set_reach(&run);
	/* PREFIX sleds begin before their address */
	r = seam_fdr_write_begin(&run.write, code,
				 sleds[0].address - SEAM_FDR_PREFIX_BYTES,
				 sleds[n - 1].address + sleds[n - 1].bytes);
	if (r == 0 && !has_begun)
		by_one_byte = run.write.memory >= 0;
	has_begun = has_begun || r == 0;
	if (r == 0) {
		r = patch_sleds(&run);
		e = seam_fdr_write_end(&run.write);
		r = r ?: e;
	}
	free(run.steps);
	return r;
}
