/* SPDX-License-Identifier: MIT */
/*
 * fde.h - where functions begin and end, from .eh_frame
 *
 * Each function that can be unwound has a frame description entry with its
 * first address and its size, and stripping a file leaves them.  Works on
 * bytes alone.
 *
 * Progress: every call moves by at least four bytes or is the last.  The cost
 * of an entry does not depend on what it points to.
 *
 * Source: Linux Standard Base 5.0 Core, 10.6 "Exception Frames"; DWARF 5, 6.4.
 */
#ifndef SEAM_FDE_H
#define SEAM_FDE_H

#include "base/base.h"
#include "base/cursor.h"

struct seam_fde {
	uint64_t start_addr;
	uint64_t size;			/* bytes; not 0 */
	bool is_signal_frame;		/* augmentation 'S': a trampoline */
};

struct seam_fde_reader {
	struct seam_bytes bytes;	/* of the section */
	enum seam_endian endian;
	uint64_t addr;			/* of the section */
	unsigned int addr_bytes;	/* 4 or 8 */
	size_t pos;
	uint64_t n_bad;			/* entries that were passed over */
};

/*
 * The next entry; false at the end, which is the terminator, the section's
 * end, or an entry whose length does not fit.  Entries with an encoding that
 * needs more than the section are passed over and counted.
 */
bool seam_fde_next(struct seam_fde_reader *reader, struct seam_fde *fde);

/*
 * The address of .eh_frame that the .eh_frame_hdr at @addr names.  False when
 * it does not say.
 */
bool seam_fde_find(struct seam_bytes header, uint64_t addr,
		   enum seam_endian endian, unsigned int addr_bytes,
		   uint64_t *eh_frame_addr);

#endif /* SEAM_FDE_H */
