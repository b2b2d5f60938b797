/* SPDX-License-Identifier: MIT */
/* made_up_guest.c - see made_up_guest.h */
#include "made_up_guest.h"

#include <errno.h>

#include "traced/guest/guest_adapter.h"
#include "unwind/in_process/self_walk.h"

struct made_up_guest made_up_guest;

/* Without an interpreter whose functions have names. */
struct seam_guest_slot seam_guest_slots[SEAM_GUEST_MAX_VMS];
const struct seam_guest_vm seam_luajit_vm;

void made_up_frames(struct seam_guest_sample *sample)
{
	const struct made_up_guest *guest = &made_up_guest;

	sample->head = (struct seam_guest_head) { .vmstate = guest->vmstate };
	sample->trace = guest->trace;
	sample->n_frames = guest->n_ids;
	for (size_t i = 0; i < guest->n_ids; i++) {
		const struct made_up_function *f =
			&guest->functions[guest->ids[i] - 1];

		sample->frames[i] = seam_guest_frame_make(f->kind,
							  guest->ids[i], 0);
		sample->origins[i] = (struct seam_guest_origin) {
			.address = f->address, .first_line = f->line };
	}
}

void seam_guest_take(const ucontext_t *context,
		     struct seam_guest_sample *sample)
{
	made_up_guest.n_taken++;
	if (made_up_guest.on_take)
		made_up_guest.on_take();
	sample->stack = (struct seam_unwind_stack) {
		.frames = sample->host, .max = SEAM_GUEST_MAX_HOST };
	seam_self_walk(context, &sample->stack);
	made_up_frames(sample);
}

int seam_guest_describe(uint32_t id, struct seam_guest_symbol *symbol)
{
	const struct made_up_function *f;

	if (id == 0 || id > made_up_guest.n_functions)
		return -ENOENT;
	f = &made_up_guest.functions[id - 1];
	*symbol = (struct seam_guest_symbol) {
		.id = id, .line = f->line, .start = f->start,
		.address = f->address, .kind = f->kind,
		.n_chunk = (uint16_t)strlen(f->chunk) };
	memcpy(symbol->chunk, f->chunk, symbol->n_chunk);
	return 0;
}

int seam_guest_init(void)
{
	return made_up_guest.refusal;
}

int seam_guest_refresh(void)
{
	return made_up_guest.refusal;
}

const char *seam_guest_refusal(void)
{
	return made_up_guest.refusal_text ? made_up_guest.refusal_text : "";
}
