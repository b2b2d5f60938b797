/* SPDX-License-Identifier: MIT */
/*
 * stream_out.h - the bytes of a stream, collected in a buffer for a writer
 *
 * A full buffer goes to the writer, in the handler that filled it, as in the
 * original.  Failure is sticky: after it, what is put is dropped.
 *
 * All of it may run in a signal handler if the writer may.
 * Threads: one at a time; see profiler_run.h.
 */
#ifndef SEAM_SYSPROF_STREAM_OUT_H
#define SEAM_SYSPROF_STREAM_OUT_H

#include <seam/lmisclib.h>

#include "base/base.h"

struct seam_sysprof_out {
	luam_Sysprof_writer writer;
	void *ctx;		/* the writer's */
	uint8_t *data;		/* NULL after the writer ended the stream */
	size_t size, used;	/* bytes */
	/*
	 * At the end of a record, so many bytes are written although there is
	 * room: what a crash leaves ends with a whole record.
	 */
	size_t enough;
	bool is_halted;		/* the writer failed, or ended the stream */
	int saved_errno;	/* at that moment */
};

/* Write what is in the buffer. */
void seam_sysprof_out_flush(struct seam_sysprof_out *out);

/* A record ends here. */
void seam_sysprof_out_end_record(struct seam_sysprof_out *out);

void seam_sysprof_out_bytes(struct seam_sysprof_out *out, const void *bytes,
			    size_t n);
void seam_sysprof_out_byte(struct seam_sysprof_out *out, uint8_t byte);

/* ULEB128 of minimal length. */
void seam_sysprof_out_uleb(struct seam_sysprof_out *out, uint64_t value);

/* A length as ULEB128, and the bytes. */
void seam_sysprof_out_string(struct seam_sysprof_out *out, const void *bytes,
			     size_t n);

#endif /* SEAM_SYSPROF_STREAM_OUT_H */
