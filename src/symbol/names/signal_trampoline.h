/* SPDX-License-Identifier: MIT */
/*
 * signal_trampoline.h - the code that signal handlers return to
 *
 * A handler's return address is that of a few instructions which call
 * sigreturn(2).  There is no call before them, so this one return address of a
 * callchain is looked up without subtracting a byte.  So is that of glibc's
 * coroutines, which makecontext() sets.
 */
#ifndef SEAM_SIGNAL_TRAMPOLINE_H
#define SEAM_SIGNAL_TRAMPOLINE_H

#include "base/base.h"

/*
 * Whether @name is that of a trampoline in a C library, a vdso or Go, before
 * demangling.
 *
 * Source: glibc sysdeps/unix/sysv/linux, musl src/signal, Linux arch/.../vdso,
 * Go src/runtime/sys_linux_amd64.s; Go's linker appends the ABI.
 */
bool seam_signal_trampoline_is_name(const char *name);

#endif /* SEAM_SIGNAL_TRAMPOLINE_H */
