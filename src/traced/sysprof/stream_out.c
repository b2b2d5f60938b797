/* SPDX-License-Identifier: MIT */
/* stream_out.c - fill a buffer, and call its writer; see stream_out.h */
#include "traced/sysprof/stream_out.h"

#include <errno.h>

#include "wire/wire.h"

void seam_sysprof_out_flush(struct seam_sysprof_out *out)
{
	const void *data = out->data;
	size_t n = out->used;

	if (out->is_halted || n == 0)
		return;
	out->used = 0;
	errno = 0;
	if (out->writer(&data, n, out->ctx) < n || !data) {
		/* a writer that fails without an errno still is an error */
		out->saved_errno = errno ?: EIO;
		out->is_halted = true;
	}
	out->data = (uint8_t *)(uintptr_t)data;
}

void seam_sysprof_out_end_record(struct seam_sysprof_out *out)
{
	if (out->used >= out->enough)
		seam_sysprof_out_flush(out);
}

void seam_sysprof_out_bytes(struct seam_sysprof_out *out, const void *bytes,
			    size_t n)
{
	const uint8_t *from = bytes;

	while (n && !out->is_halted) {
		size_t room = out->size - out->used;
		size_t part = n < room ? n : room;

		memcpy(out->data + out->used, from, part);
		out->used += part;
		from += part;
		n -= part;
		if (out->used == out->size)
			seam_sysprof_out_flush(out);
	}
}

void seam_sysprof_out_byte(struct seam_sysprof_out *out, uint8_t byte)
{
	seam_sysprof_out_bytes(out, &byte, 1);
}

void seam_sysprof_out_uleb(struct seam_sysprof_out *out, uint64_t value)
{
	uint8_t bytes[SEAM_ULEB_BYTES];

	seam_sysprof_out_bytes(out, bytes, seam_wire_put_uleb(bytes, value));
}

void seam_sysprof_out_string(struct seam_sysprof_out *out, const void *bytes,
			     size_t n)
{
	seam_sysprof_out_uleb(out, n);
	seam_sysprof_out_bytes(out, bytes, n);
}
