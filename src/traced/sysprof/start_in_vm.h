/* SPDX-License-Identifier: MIT */
/*
 * start_in_vm.h - what both APIs start by
 *
 * Threads: the VM's.
 */
#ifndef SEAM_SYSPROF_START_IN_VM_H
#define SEAM_SYSPROF_START_IN_VM_H

#include "traced/sysprof/profiler.h"

/*
 * Start for the VM of @L, which stops it when it is closed; with the
 * backtracer that the C API was given.  As seam_sysprof_start().
 */
int seam_sysprof_start_in_vm(lua_State *L,
			     const struct luam_sysprof_options *opt,
			     const struct seam_sysprof_output *output);

#endif /* SEAM_SYSPROF_START_IN_VM_H */
