/* SPDX-License-Identifier: MIT */
/*
 * find_elf.h - the file of a module, and the file with its debug information
 *
 * A module is identified by its build id.  Where one was recorded, a file with
 * another one, or none, is not the module.  Else the recorder has read what
 * identifies its contents (build_id.h).  Where it could not, and in recordings
 * of perf, the file at the path is the module if it has the recorded inode and
 * was not written after it was mapped (mtime; a change of ctime alone, as by
 * chmod, ln and mv, is no change).
 * Below a SYMFS, which a user named, it is used unchecked.  Paths, in order:
 *
 *	SYMFS/path, path		as mapped
 *	BUNDLE/elf/ID			saved by the recorder: of any author;
 *					ID is the build id, or of the contents
 *	this process's memory		[vdso] with the same build id
 *	~/.debug/.build-id/xx/rest/	perf's cache: elf, vdso
 *	CACHE/ID/executable		debuginfod's cache
 *	debuginfod servers		only with --debuginfod
 *
 * and for debug information BUNDLE/elf/ID.debug, /usr/lib/debug (under each
 * SYMFS too) by build id, perf's cache, the name in .gnu_debuglink with its
 * CRC, and debuginfod.
 */
#pragma once

#include "symbol/elf/elf_file.h"
#include "symbol/elf/module.h"

/*
 * Open the file of @module.  0; or a negative errno, -ESTALE when there is
 * another file at its path, and @why has the nearest match: "build id is
 * 12ab.., the recording has 98fe..".
 */
int seam_find_elf(struct seam_elf *found,
		  const struct seam_symbols_options *options,
		  const struct seam_module *module, struct seam_err *why);

/*
 * Open the separate debug file of @file, which @module was mapped from.
 * -ENOENT when there is none.  @why is set only where that is unexpected.
 */
int seam_find_debuginfo(struct seam_elf *found,
			const struct seam_symbols_options *options,
			const struct seam_module *module,
			const struct seam_elf *file, struct seam_err *why);

/*
 * Open what .gnu_debugaltlink of debug file @file names: @name, which has
 * build id @id.  -ENOENT when it is not there.
 */
int seam_find_debugaltlink(struct seam_elf *found,
			   const struct seam_symbols_options *options,
			   const struct seam_elf *file, const char *name,
			   const uint8_t *id, size_t id_size);

/*
 * A descriptor of the debug file (@debug) or executable with build id @id;
 * the caller closes it.  -errno with the reason in @err.  For --debuginfod:
 * asks the servers in $DEBUGINFOD_URLS by a library that is loaded at the first
 * call, so that Seam runs where the library is not installed.  Slow: a network.
 * Threads: any.
 */
int seam_debuginfod_open(bool debug, const uint8_t *id, size_t id_size,
			 struct seam_err *err);
