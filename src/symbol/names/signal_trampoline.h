/* SPDX-License-Identifier: MIT */
/*
 * signal_trampoline.h - what signal handlers return to
 *
 * The kernel makes a handler's return address that of a few instructions which
 * call sigreturn(2).  No call stands before them, so this one return address of
 * a callchain is looked up as it is.
 */
#ifndef SEAM_SIGNAL_TRAMPOLINE_H
#define SEAM_SIGNAL_TRAMPOLINE_H

#include "base/base.h"

/*
 * Whether a function of this name is one, as C libraries, vdsos and Go call
 * theirs.  @name as the linker knows it.
 *
 * Source: glibc sysdeps/unix/sysv/linux, musl src/signal, Linux arch/.../vdso,
 * Go src/runtime/sys_linux_amd64.s; Go's linker puts the ABI behind a name.
 */
bool seam_signal_trampoline_is_name(const char *name);

#endif /* SEAM_SIGNAL_TRAMPOLINE_H */
