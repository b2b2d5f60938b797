/* SPDX-License-Identifier: MIT */
/*
 * vm.h - a VM's identity, and its end
 *
 * The profiler has to stop before the VM is freed: an object in the registry
 * has a finalizer that stops it, which lua_close() calls.
 *
 * Threads: the VM's.
 */
#ifndef SEAM_SYSPROF_VM_H
#define SEAM_SYSPROF_VM_H

#include <lua.h>

#include "base/base.h"

/* The same for all coroutines of a VM. */
const void *seam_sysprof_vm_id(lua_State *L);

/* Make the object, unless it is there.  Throws no error.  False: no memory. */
bool seam_sysprof_vm_guard(lua_State *L);

#endif /* SEAM_SYSPROF_VM_H */
