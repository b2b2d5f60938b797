/* SPDX-License-Identifier: MIT */
/*
 * guest_vms.h - the VMs in this process that handlers read
 *
 * guest_attach.c finds them, outside handlers, and publishes each in a slot;
 * guest_take.c uses the slots.  A VM whose image was unloaded leaves its slot
 * when no handler can be in the adapter's functions.
 */
#ifndef SEAM_GUEST_VMS_H
#define SEAM_GUEST_VMS_H

#include <stdatomic.h>

#include "traced/guest/guest_walk.h"
#include "unwind/in_process/self_walk.h"

enum seam_guest_slot_state {
	SEAM_GUEST_FREE,
	SEAM_GUEST_TRIAL,	/* in use for the thread that proves it */
	SEAM_GUEST_USED,
	SEAM_GUEST_LEAVING,	/* not used; a handler may still be in it */
};

struct seam_guest_slot {
	struct seam_self_adapter adapter;	/* its context is this struct */
	const struct seam_guest_vm *vm;
	void *object;
	const void *key;	/* a function of the image's, by which it is */
				/* known */
	const void *dynamic;	/* its dynamic section (link.h) */
	_Atomic uint32_t state;	/* enum seam_guest_slot_state */
	uint64_t left;		/* epoch (self_readers.h); where it leaves */
	char name[64];		/* of the image */
};

/* Whether this thread proves an adapter. */
extern __thread bool seam_guest_is_proving
	__attribute__((tls_model("initial-exec")));

extern struct seam_guest_slot seam_guest_slots[SEAM_GUEST_MAX_VMS];

/* The adapters of this library; declared here, so that no room needs theirs. */
extern const struct seam_guest_vm seam_luajit_vm;

/* What the unwinder calls for a slot. */
bool seam_guest_has_code(void *slot, uint64_t pc, bool is_in_image);
enum seam_unwind_end
seam_guest_step(void *slot, const struct seam_unwind_memory *memory,
		struct seam_unwind_registers *regs);

#endif /* SEAM_GUEST_VMS_H */
