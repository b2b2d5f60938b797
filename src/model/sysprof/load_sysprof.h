/* SPDX-License-Identifier: MIT */
/*
 * load_sysprof.h - a stream of LuaJIT's sysprof into a profile
 *
 * Each sample has its VM state and a stack joined from its two stacks.
 * The stream has no times, no threads and no interval: all times are 0, each
 * sample weighs 1, and all samples belong to one thread, "luajit".
 *
 * Threads: one loads a profile.  Cost: equal samples are joined once, so 280 to
 * 680 MB of a stream a second ("./dev bench sysprof").
 */
#pragma once

#include "base/file.h"
#include "model/profile/profile.h"
#include "model/sysprof/sysprof_stacks.h"

/* The stream that a profile was made from, for exports of that stream. */
struct seam_sysprof_source {
	struct seam_file file;
};

/*
 * Add the stream in @file, which is moved into the profile, so that it is valid
 * as long.  @as_parser: as LuaJIT's own parser joins stacks.  0, also where the
 * stream is damaged: losses and notes say where, and what was read before is
 * there.  -errno when it has no profile, or another version than is known.
 */
int seam_load_sysprof(struct seam_profile *profile, struct seam_file *file,
		      bool as_parser, struct seam_err *err);
