/* SPDX-License-Identifier: MIT */
/* perf_stream.c - a walk over records, plain and packed; perf_stream.h */
#include "wire/perf/perf_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

/*
 * Unpacked bytes that are not read yet.  A record that is not whole stays here
 * until the next piece.
 */
struct seam_perf_unpacked {
	ZSTD_DStream *zstd;
	uint8_t *buf;
	size_t size, cap;	/* bytes held, room */
	size_t pos;		/* next header */
	uint64_t offset;	/* of the packed record they came from */
	uint64_t n_packed, n_unpacked;	/* bytes of all records so far */
};

/*
 * One packed record may unpack to this much.  perf packs at most one ring at
 * a time (COMPRESSED feature, mmap_len); 64 KiB of zstd could claim 2 GiB.
 */
#define MAX_UNPACKED ((size_t)256 << 20)

/*
 * All of them together: this much, and MAX_RATIO times what is packed.  perf
 * record -z packs samples to a third to a fortieth; a program of one stack,
 * to a hundredth.
 */
#define UNPACKED_FREE ((uint64_t)256 << 20)
#define MAX_RATIO 200

void seam_perf_stream_init(struct seam_perf_stream *stream,
			   struct seam_bytes bytes, enum seam_endian endian,
			   uint64_t begin, uint64_t end, bool as_is)
{
	struct seam_cursor probe = seam_cursor_make(NULL, 0, endian);

	*stream = (struct seam_perf_stream) {
		.bytes = bytes, .endian = endian, .swap = probe.swap,
		.pos = begin, .end = end < bytes.size ? end : bytes.size,
		.limit = end < bytes.size ? end : bytes.size, .as_is = as_is,
	};
}

void seam_perf_stream_fini(struct seam_perf_stream *stream)
{
	if (stream->unpacked) {
		ZSTD_freeDStream(stream->unpacked->zstd);
		free(stream->unpacked->buf);
		free(stream->unpacked);
		stream->unpacked = NULL;
	}
}

/*
 * The record at @p, of which @left bytes are there, at least a header.  Returns
 * its bytes with the header; the payload is valid where these are at most @left.
 */
static uint64_t read_record(const struct seam_perf_stream *stream,
			    const uint8_t *p, uint64_t left, uint64_t offset,
			    struct seam_perf_record *record)
{
	struct seam_perf_header h;
	uint64_t size, packed;

	memcpy(&h, p, sizeof(h));
	if (stream->swap) {
		h.type = __builtin_bswap32(h.type);
		h.misc = __builtin_bswap16(h.misc);
		h.size = __builtin_bswap16(h.size);
	}
	size = h.size;
	/*
	 * Records of simpleperf have the upper half of their size in place of
	 * misc.  Source: system/extras/simpleperf/record.h,
	 * simpleperf_record_header.
	 */
	if (h.type >= SEAM_PERF_FIRST_SIMPLEPERF) {
		size |= (uint64_t)h.misc << 16;
		h.misc = 0;
	}
	/* perf 6.16 and later let the 16-bit size overflow; the next is right */
	if (h.type == SEAM_PERF_COMPRESSED2 && left >= 16) {
		packed = seam_u64_at(p + SEAM_PERF_HEADER_BYTES);
		if (stream->swap)
			packed = __builtin_bswap64(packed);
		if (packed <= left - 16 &&
		    ((16 + packed + 7) & ~UINT64_C(7)) > size)
			size = 16 + packed;
	}
	*record = (struct seam_perf_record) {
		.type = h.type, .misc = h.misc, .offset = offset,
		.payload = { p + SEAM_PERF_HEADER_BYTES,
			     (size_t)size - SEAM_PERF_HEADER_BYTES },
	};
	return size;
}

static int refuse_size(const struct seam_perf_record *record, uint64_t size,
		       struct seam_err *err)
{
	return seam_err_set(err, -EBADMSG, "record at byte %" PRIu64 ": size=%"
			    PRIu64 " of type=%" PRIu32 " is below 8",
			    record->offset, size, record->type);
}

static bool make_room(struct seam_perf_unpacked *u)
{
	size_t cap = u->cap ? u->cap * 2 : 256 * 1024;
	uint8_t *buf;

	if (u->size < u->cap)
		return true;
	buf = cap > MAX_UNPACKED ? NULL : realloc(u->buf, cap);
	if (!buf)
		return false;
	u->buf = buf;
	u->cap = cap;
	return true;
}

/* Append what is in @packed, after the record that is not whole. */
static int unpack(struct seam_perf_unpacked *u, struct seam_bytes packed,
		  struct seam_err *err)
{
	ZSTD_inBuffer in = { packed.data, packed.size, 0 };
	bool more = true;

	u->size -= u->pos;
	if (u->pos)
		memmove(u->buf, u->buf + u->pos, u->size);
	u->pos = 0;
	u->n_packed += packed.size;
	/* with a full buffer zstd may hold output back: call it again */
	while (in.pos < in.size || more) {
		ZSTD_outBuffer out;
		size_t r;

		if (!make_room(u))
			return u->cap > MAX_UNPACKED / 2 ?
			       seam_err_set(err, -EBADMSG, "compressed record "
				"at byte %" PRIu64 " unpacks to over %zu MiB",
				u->offset, MAX_UNPACKED >> 20) :
			       seam_err_no_memory(err);
		out = (ZSTD_outBuffer) { u->buf, u->cap, u->size };
		r = ZSTD_decompressStream(u->zstd, &out, &in);
		if (ZSTD_isError(r))
			return seam_err_set(err, -EBADMSG, "zstd: %s",
					    ZSTD_getErrorName(r));
		more = out.pos == out.size;
		u->n_unpacked += out.pos - u->size;
		u->size = out.pos;
		if (u->n_unpacked > UNPACKED_FREE + MAX_RATIO * u->n_packed)
			return seam_err_set(err, -EBADMSG,
				"compressed records up to byte %" PRIu64
				" unpack to over %d times their size",
				u->offset, MAX_RATIO);
	}
	return 0;
}

static int unpack_record(struct seam_perf_stream *stream,
			 const struct seam_perf_record *record,
			 struct seam_err *err)
{
	struct seam_cursor c = seam_cursor_over(record->payload,
						stream->endian);
	struct seam_perf_unpacked *u = stream->unpacked;
	uint64_t size = record->payload.size;

	if (!u)
		u = stream->unpacked = calloc(1, sizeof(*u));
	if (u && !u->zstd)
		u->zstd = ZSTD_createDStream();
	if (!u || !u->zstd)
		return seam_err_no_memory(err);
	if (record->type == SEAM_PERF_COMPRESSED2)
		size = seam_cursor_u64(&c);
	if (size > seam_cursor_left(&c))
		size = seam_cursor_left(&c);
	u->offset = record->offset;
	return unpack(u, (struct seam_bytes) { c.base + c.pos, (size_t)size },
		      err);
}

/* A whole record out of what was unpacked; 0 when there is none. */
static int next_unpacked(struct seam_perf_stream *stream,
			 struct seam_perf_record *record,
			 struct seam_err *err)
{
	struct seam_perf_unpacked *u = stream->unpacked;
	size_t left = u ? u->size - u->pos : 0;
	uint64_t size;

	if (left < SEAM_PERF_HEADER_BYTES)
		return 0;
	size = read_record(stream, u->buf + u->pos, left, u->offset, record);
	if (size < SEAM_PERF_HEADER_BYTES)
		return refuse_size(record, size, err);
	if (size > left)
		return 0;
	u->pos += (size_t)size;
	return 1;
}

/* Bytes that follow the record, outside of its size. */
static uint64_t trailing_bytes(const struct seam_perf_stream *stream,
			       const struct seam_perf_record *record)
{
	struct seam_cursor c = seam_cursor_over(record->payload,
						stream->endian);

	if (record->type == SEAM_PERF_AUXTRACE)
		return seam_cursor_u64(&c);
	/* simpleperf has the formats in the record */
	if (record->type != SEAM_PERF_HEADER_TRACING_DATA ||
	    record->payload.size > sizeof(uint64_t))
		return 0;
	return ((uint64_t)seam_cursor_u32(&c) + 7) & ~UINT64_C(7);
}

static int take_plain(struct seam_perf_stream *stream,
		      struct seam_perf_record *record, struct seam_err *err)
{
	const uint8_t *p = stream->bytes.data + stream->pos;
	uint64_t left = stream->limit - stream->pos;
	uint64_t size, n_trailing;

	if (left < SEAM_PERF_HEADER_BYTES)
		return seam_err_set(err, -ENODATA, "record header cut at byte %"
				    PRIu64, stream->pos);
	size = read_record(stream, p, left, stream->pos, record);
	if (size < SEAM_PERF_HEADER_BYTES)
		return refuse_size(record, size, err);
	if (size > left)
		return seam_err_set(err, -ENODATA,
			"record at byte %" PRIu64 ": size=%" PRIu64
			", %" PRIu64 " bytes left", stream->pos, size, left);
	n_trailing = trailing_bytes(stream, record);
	if (n_trailing > left - size)
		return seam_err_set(err, -ENODATA,
			"record at byte %" PRIu64 ": %" PRIu64
			" bytes after it, %" PRIu64 " left", stream->pos,
			n_trailing, left - size);
	stream->trailing = (struct seam_bytes) {
		p + size, (size_t)n_trailing,
	};
	return 1;
}

int seam_perf_stream_next(struct seam_perf_stream *stream,
			  struct seam_perf_record *record,
			  struct seam_err *err)
{
	const struct seam_perf_unpacked *u;

	stream->trailing = (struct seam_bytes) { 0 };
	for (;;) {
		bool is_packed;
		int r = next_unpacked(stream, record, err);

		if (r != 0)
			return r;
		u = stream->unpacked;
		if (stream->pos >= stream->end)
			return !u || u->size == u->pos ? 0 :
			       seam_err_set(err, -ENODATA, "compressed data "
				"ends in the middle of a record: %zu bytes left, "
				"from byte %" PRIu64, u->size - u->pos,
				u->offset);
		r = take_plain(stream, record, err);
		if (r < 0)
			return r;
		is_packed = !stream->as_is &&
			    (record->type == SEAM_PERF_COMPRESSED ||
			     record->type == SEAM_PERF_COMPRESSED2);
		r = is_packed ? unpack_record(stream, record, err) : 1;
		if (r < 0)
			return r;
		stream->pos += SEAM_PERF_HEADER_BYTES + record->payload.size +
			       stream->trailing.size;
		if (!is_packed)
			return 1;
	}
}
