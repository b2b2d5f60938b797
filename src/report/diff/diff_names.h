/* SPDX-License-Identifier: MIT */
/*
 * diff_names.h - what a function and a module are called in every build
 *
 * Compilers, linkers and JITs add to names what changes from build to build.
 */
#pragma once

#include "base/base.h"
#include "model/profile/profile.h"

enum { SEAM_DIFF_NAME = 4096 };	/* longer names are compared as they are */

/*
 * @name without
 *	.isra.N .part.N .constprop.N .cold .lto_priv.N .llvm.N .__uniq.N
 *	@VERSION, but not @plt; Rust's ::h and 16 digits
 *	the number of a lambda or a closure: {lambda()#2}, $_2
 *	of V8's code the tier, of LuaJIT's traces the number; of both, and of a
 *	guest's functions, folder and line: these change with each edit above,
 *	so that all traces of a file are one function
 * Returns @buf or @name.  *@is_part: the function is a part of another one,
 * .part or .cold.
 */
const char *seam_diff_function_name(char buf[SEAM_DIFF_NAME], const char *name,
				    enum seam_layer layer, bool *is_part);

/*
 * The file's name without folder and version: libc.so for
 * /usr/lib/libc-2.31.so and libc.so.6.  Returns @buf.
 */
const char *seam_diff_module_name(char buf[SEAM_DIFF_NAME], const char *path,
				  enum seam_layer layer);
