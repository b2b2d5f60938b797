/* SPDX-License-Identifier: MIT */
/*
 * vm_code.h - where the interpreters of this process are
 *
 * Not in a handler; after seam_guest_init().
 */
#ifndef SEAM_SYSPROF_VM_CODE_H
#define SEAM_SYSPROF_VM_CODE_H

#include "base/base.h"

/*
 * The code of the interpreter of LuaJIT @i, of those in use; false: there are
 * no more.
 */
bool seam_sysprof_vm_code(size_t i, uint64_t *start, uint64_t *end);

#endif /* SEAM_SYSPROF_VM_CODE_H */
