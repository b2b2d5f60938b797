/* SPDX-License-Identifier: MIT */
/*
 * inject_tables.h - the tables of an injected file: lines and unwinding
 *
 * Only inject.c includes it.
 */
#ifndef SEAM_INJECT_TABLES_H
#define SEAM_INJECT_TABLES_H

#include "base/array.h"
#include "export/inject/inject.h"

/* Bytes under construction.  A failure is sticky. */
struct seam_inject_buffer {
	SEAM_ARRAY(uint8_t) data;
	bool is_out_of_memory;
};

void seam_inject_put(struct seam_inject_buffer *b, const void *bytes,
		     size_t size);
void seam_inject_u8(struct seam_inject_buffer *b, uint8_t v);
void seam_inject_u16(struct seam_inject_buffer *b, uint16_t v);
void seam_inject_u32(struct seam_inject_buffer *b, uint32_t v);
void seam_inject_u64(struct seam_inject_buffer *b, uint64_t v);
void seam_inject_string(struct seam_inject_buffer *b, const char *s);
void seam_inject_align(struct seam_inject_buffer *b, size_t align);

/* The .debug_ sections; code is in [@start, @end). */
void seam_inject_debug(struct seam_inject_buffer *abbrev,
		       struct seam_inject_buffer *info,
		       struct seam_inject_buffer *ranges,
		       struct seam_inject_buffer *line,
		       const struct seam_inject_function *functions, size_t n,
		       uint64_t start, uint64_t end);

/*
 * .eh_frame at @frame_addr of the file, and in @fdes the entries that
 * .eh_frame_hdr lists.  Tables that cannot be copied are counted in @n_bad.
 */
struct seam_inject_fde {
	uint64_t code_addr;
	uint64_t fde_addr;
};

struct seam_inject_fdes {
	SEAM_ARRAY(struct seam_inject_fde) list;
};

void seam_inject_frames(struct seam_inject_buffer *frame,
			struct seam_inject_fdes *fdes,
			const struct seam_inject_function *functions, size_t n,
			uint64_t frame_addr, uint64_t *n_bad);

/* .eh_frame_hdr at @header_addr.  Sorts @fdes. */
void seam_inject_frame_header(struct seam_inject_buffer *header,
			      struct seam_inject_fdes *fdes,
			      uint64_t header_addr, uint64_t frame_addr);

#endif /* SEAM_INJECT_TABLES_H */
