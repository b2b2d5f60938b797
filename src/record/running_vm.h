/* SPDX-License-Identifier: MIT */
/*
 * running_vm.h - which process that runs has a VM that the agent samples
 *
 * By the program and the libraries that it has mapped as code.  They may be of
 * any user: they are opened as record/proc/target_file.h says, with the rights
 * of the process's user, in a helper.
 *
 * Bounded: the first 64 processes, 64 files of each.
 * Cost: 0.1 ms a mapped file; one second at most, also where a file system
 * does not answer.
 */
#ifndef SEAM_RUNNING_VM_H
#define SEAM_RUNNING_VM_H

#include "record/proc/procfs.h"

/* The first process of @pids that has LuaJIT; 0: none, or not in time. */
int seam_running_vm_find(const struct seam_number_list *pids);

#endif /* SEAM_RUNNING_VM_H */
