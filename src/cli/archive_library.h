/* SPDX-License-Identifier: MIT */
/*
 * archive_library.h - libarchive, loaded when a recording is packed or opened
 *
 * No other command needs it, and it brings ten libraries.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "base/base.h"
#include "base/err.h"

#define SEAM_ARCHIVE_CALLS(ROW)						\
	ROW(archive_read_new) ROW(archive_read_support_filter_zstd)	\
	ROW(archive_read_support_format_tar) ROW(archive_read_open)	\
	ROW(archive_read_next_header) ROW(archive_read_data)		\
	ROW(archive_read_free) ROW(archive_error_string)		\
	ROW(archive_write_new) ROW(archive_write_add_filter_zstd)	\
	ROW(archive_write_set_format_gnutar)				\
	ROW(archive_write_set_bytes_in_last_block)			\
	ROW(archive_write_open_FILE) ROW(archive_write_header)		\
	ROW(archive_write_data) ROW(archive_write_close)		\
	ROW(archive_write_free) ROW(archive_entry_new)			\
	ROW(archive_entry_free) ROW(archive_entry_clear)		\
	ROW(archive_entry_pathname) ROW(archive_entry_set_pathname)	\
	ROW(archive_entry_filetype) ROW(archive_entry_set_filetype)	\
	ROW(archive_entry_hardlink) ROW(archive_entry_set_size)		\
	ROW(archive_entry_set_perm) ROW(archive_entry_set_mtime)

struct seam_archive_library {
#define MEMBER(name) __typeof__(name) *name;
	SEAM_ARCHIVE_CALLS(MEMBER)
#undef MEMBER
};

/* The functions; NULL with the reason, and which package has them. */
const struct seam_archive_library *seam_archive_library(struct seam_err *err);
