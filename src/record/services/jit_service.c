/* SPDX-License-Identifier: MIT */
/* jit_service.c - begin, take, end of a JIT's ring; see jit_service.h */
#include "record/services/jit_service.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "wire/manifest.h"

enum {
	MAX_PROCESSES = 128,	/* of one program at a time; it and its forks */
	FREE_RINGS = 4,
};

static int begin(struct seam_service_stream *stream)
{
	struct seam_jit_service *jit = stream->service->context;

	if (jit->dumps.folder < 0)
		jit->dumps.folder =
			seam_bundle_folder(jit->bundle, "jit", NULL);
	stream->state = seam_jit_stream_begin(&jit->dumps, stream->pid,
					      stream->since_ns);
	return stream->state ? 0 : -ENOMEM;
}

static bool take(struct seam_service_stream *stream, uint8_t *record,
		 size_t size)
{
	struct seam_jit_stream *state = stream->state;

	state->until_ns = stream->until_ns;
	seam_jit_stream_take(state, record, size);
	return false;
}

static void preview(struct seam_service *service,
		    struct seam_service_stream *stream, const uint8_t *record,
		    size_t size)
{
	enum { WHOLE = SEAM_JIT_CHUNK_FIRST | SEAM_JIT_CHUNK_LAST };
	const struct seam_jit_service *jit = service->context;
	struct seam_ring_header header;
	struct seam_jit_chunk chunk;
	const size_t at = sizeof(header) + sizeof(chunk);

	if (!jit->dumps.on_code || size < at)
		return;
	memcpy(&header, record, sizeof(header));
	memcpy(&chunk, record + sizeof(header), sizeof(chunk));
	if (header.type == PERF_RECORD_SAMPLE && chunk.flags == WHOLE &&
	    chunk.size <= size - at)
		jit->dumps.on_code(jit->dumps.context, stream->pid,
				   (struct seam_bytes) { record + at,
							 chunk.size });
}

static void end(struct seam_service_stream *stream,
		const struct seam_owner_counts *counts)
{
	seam_jit_stream_end(stream->state, counts->n_offered);
}

/* Write the dumps, and name new ones.  Nothing can be mapped at address 0. */
static void finish_round(struct seam_service *service, struct seam_synth *round)
{
	struct seam_jit_service *jit = service->context;
	char folder[PATH_MAX], path[PATH_MAX + 32];

	seam_jit_dumps_write(&jit->dumps);
	round->id = jit->sideband_id;
	for (size_t i = 0; i < jit->dumps.files.n; i++) {
		struct seam_jit_dump_file *file = &jit->dumps.files.items[i];

		if (file->is_named)
			continue;
		file->is_named = true;
		if (!realpath(jit->bundle->path, folder))
			snprintf(folder, sizeof(folder), "%s",
				 jit->bundle->path);
		snprintf(path, sizeof(path), "%s/jit/jit-%" PRIu32 ".dump",
			 folder, file->pid);
		seam_synth_marker(round, (int)file->pid, path, seam_clock_ns());
	}
}

/* ---- the recording ---- */

static void start(struct seam_service *service,
		  const struct seam_bundle *bundle, uint64_t sideband_id)
{
	struct seam_jit_service *jit = service->context;

	jit->bundle = bundle;
	jit->sideband_id = sideband_id;
}

static uint64_t n_bytes(const struct seam_service *service)
{
	const struct seam_jit_service *jit = service->context;
	uint64_t bytes = 0;

	for (size_t i = 0; i < jit->dumps.files.n; i++)
		bytes += jit->dumps.files.items[i].n_bytes +
			 jit->dumps.files.items[i].pending.n;
	return bytes;
}

static int copy(struct seam_service *service, const struct seam_bundle *bundle,
		struct seam_err *err)
{
	const struct seam_jit_service *jit = service->context;
	int folder, r;

	if (!jit->dumps.files.n)
		return 0;
	folder = seam_bundle_folder(bundle, "jit", err);
	r = folder < 0 ? folder : seam_jit_dumps_copy(&jit->dumps, folder, err);
	seam_file_close_fd(folder);
	return r;
}

static void describe(struct seam_service *service, struct seam_manifest *m,
		     bool is_snapshot)
{
	const struct seam_jit_service *jit = service->context;
	const struct seam_jit_dumps *d = &jit->dumps;
	uint64_t *n = m->counts.n;

	(void)is_snapshot;
	n[SEAM_COUNT_JIT_STREAMS] = d->n_streams;
	n[SEAM_COUNT_JIT_RECORDS] = d->n_written;
	n[SEAM_COUNT_JIT_LOST] = d->n_offered - d->n_taken + d->n_unwritten +
				 service->n_unowned_offered +
				 service->n_without_ring;
	n[SEAM_COUNT_JIT_BAD] = d->n_bad + service->n_bad;
	n[SEAM_COUNT_JIT_UNOWNED] = service->n_unowned;
}

void seam_jit_service_init(struct seam_jit_service *jit, size_t ring_bytes)
{
	*jit = (struct seam_jit_service) {
		.dumps.folder = -1,
		.service = {
			.link = {
				.name = SEAM_JIT_SERVICE,
				.n_free = FREE_RINGS,
				.geometry = {
					.n_slots = MAX_PROCESSES,
					.data_bytes = ring_bytes,
					.watermark = (uint32_t)ring_bytes / 4,
				},
			},
			.begin = begin, .take = take, .end = end,
			.preview = preview, .finish_round = finish_round,
			.start = start, .n_bytes = n_bytes, .copy = copy,
			.describe = describe, .context = jit,
		},
	};
}

void seam_jit_service_fini(struct seam_jit_service *jit)
{
	seam_jit_dumps_fini(&jit->dumps);
	if (jit->dumps.folder > 0)
		close(jit->dumps.folder);
	jit->dumps.folder = -1;
}
