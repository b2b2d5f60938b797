/* SPDX-License-Identifier: MIT */
/*
 * load.h - a recording of any kind into a profile
 *
 * Reads a bundle, or a file of a kind that bundles hold, written by any tool: the
 * format is detected from the bytes.  Samples (data), code of JITs (jit/) and
 * XRay logs (xray/) go into one profile; threads of equal pid and tid are one.
 * Logs without wall times, or samples of another clock, cannot be aligned: such
 * calls begin where the samples do, and a note says so.
 */
#pragma once

#include "model/profile/profile.h"
#include "model/profile/waits.h"
#include "symbol/symbols.h"

struct seam_load_options {
	struct seam_symbols_options symbols;	/* its bundle is not used */
	const char *const *jit;		/* dumps and maps, or folders of them */
	size_t n_jit;
	/*
	 * Samples have the number of their record, and each address of a
	 * callchain has a frame: for printing records with names.
	 */
	bool by_record;
	bool no_joins;			/* stacks that were cut remain so */
	bool no_logs;			/* no XRay logs of a bundle */
	bool like_parser;		/* sysprof: stacks as LuaJIT's parser */
	const char *map;		/* an XRay log's program; NULL: none */
	/*
	 * XRay logs are cut to this part of the recording's time while they
	 * are read, in the form of seam_selection_time().  NULL or not of that
	 * form: all of it.
	 */
	const char *time;
};

/* The recording that commands take when none is named. */
#define SEAM_LOAD_DEFAULT "recording.seam"

/*
 * Read @path (NULL: the default; "-": standard input) into @profile, which
 * the caller makes with seam_profile_init() and frees in every case.
 *
 * Returns 0, also when a part was damaged or missing: what was whole is in
 * the profile, and its losses and notes say what was not.  -errno with the
 * chain of causes when there is nothing to show.
 */
int seam_load(struct seam_profile *profile, const char *path,
	      const struct seam_load_options *options, struct seam_err *err);

/*
 * The same for several XRay logs of one program - its processes, its
 * sessions - on one time line.
 */
int seam_load_logs(struct seam_profile *profile, const char *const *paths,
		   size_t n_paths, const struct seam_load_options *options,
		   struct seam_err *err);

/*
 * When the threads of the bundle @path waited: threads to @profile, as above,
 * and waits to @waits, sorted.  None where @path is no bundle with samples, or
 * was recorded without --off-cpu.  Both are to be freed in every case.
 */
int seam_load_waits(struct seam_profile *profile, const char *path,
		    struct seam_waits *waits, struct seam_err *err);
