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
#pragma once

#include "base/arena.h"

enum { SEAM_DEMANGLE_MAX = 16 * 1024 };

/*
 * The name for people, in @arena; @name itself when it is not mangled, or
 * when it cannot be read or stored.
 */
const char *seam_demangle(struct seam_arena *arena, const char *name);

/* The same with the parameters of a C++ function, as llvm-xray prints it. */
const char *seam_demangle_with_parameters(struct seam_arena *arena,
					  const char *name);

/*
 * Write @name, a JVM's method signature, as people write it into @buf of @cap
 * bytes:
 *
 *	Ljava/util/Arrays;copyOf([BI)[B    java.util.Arrays.copyOf(byte[], int)
 *
 * That is how agents of the JVM name compiled methods in dumps and maps.  The
 * result type is left out: it does not distinguish methods.  False, and @buf
 * holds nothing useful, when @name is no signature or does not fit.
 *
 * Source: Java Virtual Machine Specification, 4.3 "Descriptors".
 */
bool seam_java_name(const char *name, char *buf, size_t cap);
