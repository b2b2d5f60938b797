/* SPDX-License-Identifier: MIT */
/*
 * trigger_expr.h - triggers of the command line, for programs
 *
 * wire/xray/trigger_text.h has their form; here a TIME has a unit.  The program
 * finds its functions, and reports how many there are
 * (wire/xray/xray_functions.h).
 */
#ifndef SEAM_TRIGGER_EXPR_H
#define SEAM_TRIGGER_EXPR_H

#include "base/err.h"

/* 0; or -EINVAL with the cause. */
int seam_trigger_expr_check(const char *text, struct seam_err *err);

#endif /* SEAM_TRIGGER_EXPR_H */
