/* SPDX-License-Identifier: MIT */
/*
 * section_unpack.h - a compressed section of an untrusted ELF file
 *
 * The size that the section announces is checked before memory is taken, and
 * it must be right to the byte.
 *
 * Source: gABI 4.3, "Section Compression"; for ".zdebug_*" binutils.
 */
#ifndef SEAM_SECTION_UNPACK_H
#define SEAM_SECTION_UNPACK_H

#include "base/base.h"

/*
 * Unpack a section with SHF_COMPRESSED (zlib or zstd) of a 64-bit little-endian
 * file.  @whole->data is then of malloc().  -EFBIG: more than @max bytes;
 * -ENOTSUP: another compression; -EBADMSG; -ENOMEM.
 */
int seam_section_unpack(struct seam_bytes packed, size_t max,
			struct seam_bytes *whole);

/* The same for a section called ".zdebug_*". */
int seam_section_unpack_zdebug(struct seam_bytes packed, size_t max,
			       struct seam_bytes *whole);

#endif /* SEAM_SECTION_UNPACK_H */
