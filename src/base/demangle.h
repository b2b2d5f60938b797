/* SPDX-License-Identifier: MIT */
/*
 * demangle.h - the name a person wrote, from the one the compiler made
 *
 * C++ (Itanium), Rust (v0 and legacy) and D.  C++ parameters and clone
 * suffixes and Rust's hashes are left out, as perf prints names, so that both
 * can be compared.
 *
 * A mangled name is a small program for a printer; some of a few hundred
 * bytes print gigabytes.  A name that would be longer than SEAM_DEMANGLE_MAX
 * stays mangled; libiberty's own limit on recursion is in force.  Names of
 * files are demangled by the sandboxed process that reads them (sandbox.h).
 *
 * Threads: no shared state.
 */
#ifndef SEAM_DEMANGLE_H
#define SEAM_DEMANGLE_H

#include "base/arena.h"

enum { SEAM_DEMANGLE_MAX = 16 * 1024 };

/* False when seam_demangle() would return the name as it is. */
bool seam_is_mangled(const char *name);

/*
 * The name for people, in @arena; @name itself when it is not mangled, or
 * when it cannot be read or stored.
 */
const char *seam_demangle(struct seam_arena *arena, const char *name);

/* The same with the parameters of a C++ function, as llvm-xray prints it. */
const char *seam_demangle_with_parameters(struct seam_arena *arena,
					  const char *name);

#endif /* SEAM_DEMANGLE_H */
