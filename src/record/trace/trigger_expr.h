/* SPDX-License-Identifier: MIT */
/*
 * trigger_expr.h - what makes a snapshot of the newest calls
 *
 *	FUNCTION>TIME	a call of the function took longer than TIME
 *	calls:FUNCTION	the function was called
 *	signal:NAME	the program received the signal, such as SEGV
 *
 * FUNCTION is a whole name, as it is in the symbol table or demangled, or a
 * GLOB of names, as for fnmatch(3).  TIME has a unit: 10ms, 500us, 2s, 100ns.
 * The last '>' is in front of TIME, so C++ names may have others.
 *
 * The recorder only checks these.  The program finds its functions, and reports
 * how many there are (wire/xray/xray_functions.h).
 */
#ifndef SEAM_TRIGGER_EXPR_H
#define SEAM_TRIGGER_EXPR_H

#include "base/err.h"

#include <stddef.h>
#include <stdio.h>

enum { SEAM_TRIGGER_MAX = 16 };		/* as many as a program takes */

/* 0; or -EINVAL with the cause. */
int seam_trigger_expr_check(const char *text, struct seam_err *err);

/*
 * Write @n expressions, all checked, to @out as a value of SEAM_TRACE: with a
 * comma in between, and commas and semicolons of names escaped.
 */
void seam_trigger_expr_write(FILE *out, const char *const *texts, size_t n);

#endif /* SEAM_TRIGGER_EXPR_H */
