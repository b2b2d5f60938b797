/* SPDX-License-Identifier: MIT */
/*
 * eh_frame.h - call frame information: which code has it, and where it is
 *
 *	.eh_frame = { CIE | FDE } [ 0:u32 ]
 *	CIE = length:u32 [length:u64] 0:u32 version augmentation
 *	      factors return-address-register [augmentation data] instructions
 *	FDE = length:u32 [length:u64] distance-to-its-CIE:u32
 *	      initial-location range [augmentation data] instructions
 *	.eh_frame_hdr = 1:u8 encodings:u8[3] address-of-.eh_frame n
 *	                { initial-location address-of-its-FDE } sorted
 *
 * In .debug_frame a CIE has an id of all ones, an FDE names its CIE by an
 * offset in the section, and addresses are plain.  unwind/compile runs the
 * instructions.  Addresses are those of the file's program headers.
 *
 * Bytes are untrusted: an entry that breaks the format costs itself, and only a
 * length that leads out of the section ends a walk.  An FDE may name any CIE
 * and is run for any address, so both have a largest size, far above that of
 * any compiler: the cost of an entry does not depend on what it points to.
 *
 * Everything handed out points into the caller's bytes, which any number of
 * threads may read.
 *
 * Source: LSB Core 5.0, 10.6 "Exception Frames"; DWARF 5, 6.4.1 and 7.24.
 */
#pragma once

#include "base/base.h"
#include "base/cursor.h"

/* How an address is stored.  Source: LSB Core 5.0, 10.5.1 (DW_EH_PE_*). */
enum {
	SEAM_EH_PE_ABSPTR = 0x00,
	SEAM_EH_PE_FORMAT = 0x0f,	/* the bits of the format */
	SEAM_EH_PE_PCREL = 0x10,
	SEAM_EH_PE_DATAREL = 0x30,
	SEAM_EH_PE_BASE = 0x70,		/* the bits of the base */
	SEAM_EH_PE_SDATA4 = 0x0b,
	SEAM_EH_PE_OMIT = 0xff,
};

/* Largest found: CIE 60 bytes; FDE 33,680, in a librustc_driver. */
enum {
	SEAM_EH_MAX_CIE = 1024,
	SEAM_EH_MAX_FDE = 256 * 1024,
};

/* A file's section of entries, and its table of contents where it has one. */
struct seam_eh_frame {
	struct seam_bytes entries;	/* .eh_frame or .debug_frame */
	uint64_t entries_addr;
	struct seam_bytes header;	/* .eh_frame_hdr; size 0: none */
	uint64_t header_addr;
	enum seam_endian endian;
	uint8_t address_bytes;		/* 4 or 8 */
	bool is_debug_frame;
	/* entries may be followed by something else: they end with a zero */
	bool ends_at_terminator;
};

/* A CIE: what all its FDEs have in common. */
struct seam_eh_cie {
	size_t offset;			/* in the section */
	struct seam_bytes instructions;
	size_t instructions_offset;	/* in the section */
	uint64_t code_factor;		/* code_alignment_factor */
	int64_t data_factor;		/* data_alignment_factor */
	uint64_t return_register;	/* its column */
	uint8_t address_encoding;	/* of its FDEs: SEAM_EH_PE_* */
	uint8_t address_bytes;
	bool has_augmentation_data;	/* "z" */
	bool is_signal_frame;		/* "S" */
};

/* An FDE: [start, end) is the code that it is for. */
struct seam_eh_fde {
	uint64_t start, end;
	struct seam_bytes instructions;
	size_t instructions_offset;	/* in the section */
	struct seam_eh_cie cie;
};

/*
 * Read the entry at @offset, and set *@next to the offset after it.
 *
 * Returns 1 with an FDE in @fde; 0 for a CIE, a terminator, or an entry that
 * is skipped because it breaks the format;
 * -ENODATA at the end, or where a length leads out of the section.
 * *@next is larger than @offset unless the result is -ENODATA.
 *
 * @fde->cie is read again only when it is another one than before: zero @fde
 * before the first call, and pass the same one on.
 */
int seam_eh_frame_entry(const struct seam_eh_frame *frame, size_t offset,
			struct seam_eh_fde *fde, size_t *next);

/*
 * The FDE for the code at @addr, by the table of contents.
 *
 * Returns 1 with @fde; 0 where no FDE has @addr; -EBADMSG where table or entry
 * break the format; -ENOTSUP where there is no table, or none that can be
 * searched (its entries are not of 4 bytes): then all entries must be read.
 * Cost: one binary search and one entry.
 */
int seam_eh_frame_find(const struct seam_eh_frame *frame, uint64_t addr,
		       struct seam_eh_fde *fde);

/* The address of .eh_frame as frame->header has it; false: it has none. */
bool seam_eh_frame_addr(const struct seam_eh_frame *frame, uint64_t *addr);

/*
 * Read the address at @c, stored by @encoding; @addr is the address of the
 * window's first byte, @data_addr the base of DATAREL.  Fails @c with
 * -ENOTSUP for what call frame information of x86-64 and arm64 never has.
 */
uint64_t seam_eh_address(struct seam_cursor *c, uint8_t encoding,
			 uint8_t address_bytes, uint64_t addr,
			 uint64_t data_addr);
