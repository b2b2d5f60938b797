/* SPDX-License-Identifier: MIT */
/* vm_code.c - where the interpreters of this process are; see lua_side.h */
#include "traced/sysprof/lua_side.h"

#include "traced/guest/luajit/luajit_vm.h"

bool seam_sysprof_vm_code(size_t i, uint64_t *start, uint64_t *end)
{
	for (size_t k = 0; k < SEAM_GUEST_MAX_VMS; k++) {
		const struct seam_guest_slot *slot = &seam_guest_slots[k];
		const struct seam_luajit_object *vm = slot->object;

		if (atomic_load(&slot->state) != SEAM_GUEST_USED ||
		    slot->vm != &seam_luajit_vm || i-- != 0)
			continue;
		*start = vm->lj.code_start;
		*end = vm->lj.code_end;
		return true;
	}
	return false;
}
