/* SPDX-License-Identifier: MIT */
/* recording.c - begin perf.data, write the manifest; see recording.h */
#include "record/recording.h"

#include "base/file.h"
#include "record/session.h"
#include "wire/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Bytes reserved for a manifest: in all, and more for each ring and trigger. */
enum {
	MANIFEST_BYTES = 40960,
	MANIFEST_RING_BYTES = 256,
	MANIFEST_TRIGGER_BYTES = 512,
};

void seam_recording_init(struct seam_recording *recording)
{
	*recording = (struct seam_recording) {
		.bundle.dir = -1, .data.fd = -1, .meta = -1,
	};
}

static size_t list_left_out(const struct seam_session *s, const char **names)
{
	size_t n = 0;

	for (int i = 0; seam_left_out_name(i); i++)
		if (s->sources.left_out >> i & 1)
			names[n++] = seam_left_out_name(i);
	return n;
}

static void list_rings(const struct seam_session *s,
		       struct seam_manifest_ring *out)
{
	for (size_t i = 0; i < s->sources.rings.n; i++) {
		const struct seam_source_ring *ring =
			&s->sources.rings.items[i];

		out[i] = (struct seam_manifest_ring) {
			.cpu = ring->cpu,
			.tid = ring->tid,
			.kind = seam_ring_use_name(ring->use),
			.area_bytes = ring->aux_bytes,
			.size_bytes = ring->size_bytes,
			.n_records = ring->n_records,
			.n_bytes = ring->n_bytes,
			.n_lost = ring->n_lost,
		};
	}
}

/* All events but the side-band's.  Returns how many. */
static size_t list_by_event(const struct seam_recording *recording,
			    const struct seam_session *s,
			    struct seam_manifest_event *out)
{
	const struct seam_data_file_event *counts = recording->data.by_event;
	size_t n = 0;

	for (size_t e = 0; e < s->events.n; e++)
		if (e != s->sources.sideband)
			out[n++] = (struct seam_manifest_event) {
				.name = s->events.items[e].name,
				.n_samples = counts[e].n_samples,
				.n_lost = counts[e].n_lost,
			};
	return n;
}

_Static_assert(SEAM_COUNT_KEPT_INTERRUPTED - SEAM_COUNT_KEPT_GONE ==
	       SEAM_KEPT_INTERRUPTED - SEAM_KEPT_GONE, "in one order");

static void count_kept(uint64_t *n, const struct seam_kept_files_counts *kept)
{
	n[SEAM_COUNT_KEPT_FILES] = kept->files.n_copied;
	n[SEAM_COUNT_KEPT_FILE_BYTES] = kept->files.n_bytes;
	n[SEAM_COUNT_KEPT_DUMPS] = kept->jit.n_copied;
	n[SEAM_COUNT_KEPT_DUMP_BYTES] = kept->jit.n_bytes;
	for (size_t i = 0; i < SEAM_KEPT_N_CAUSES; i++)
		n[SEAM_COUNT_KEPT_GONE + i] = kept->files.n_left_out[i] +
					      kept->jit.n_left_out[i];
}

/* The mapped files without a build id; NULL: none, or no memory. */
static struct seam_manifest_file *list_files(const struct seam_kept_files *kept,
					     size_t *n)
{
	struct seam_manifest_file *files = kept->files.n ?
		calloc(kept->files.n, sizeof(*files)) : NULL;

	*n = 0;
	for (size_t i = 0; files && i < kept->files.n; i++) {
		const struct seam_kept_file *file = &kept->files.items[i];

		if (file->content_id)
			files[(*n)++] = (struct seam_manifest_file) {
				file->path, file->ino, file->content_id,
			};
	}
	return files;
}

struct seam_manifest seam_recording_describe(
	const struct seam_recording *recording, const struct seam_session *s)
{
	struct seam_manifest m = {
		.version = "seam " SEAM_VERSION,
		.overwrite = s->options->overwrite,
		.snapshots = s->options->overwrite || s->sources.aux_snapshots,
		.words = s->options->words,
		.n_words = s->options->n_words,
		.boot_id = s->kernel.boot_id,
		.kernel_build_id_size = s->kernel.build_id_size,
		.kernel_text_addr = s->kernel.text_addr,
		.vdso_build_id_size = s->kept_files.vdso_build_id_size,
		.kernel_clock = seam_sources_has_aux(&s->sources),
		.start_wall_ns = s->start_wall_ns,
		.start_ns = s->start_ns,
		.duration_ns = recording->duration_ns,
		.n_events = s->events.n,
		.n_samples = recording->data.counts.n_samples,
		.counts = recording->data.losses,
		.stacks = recording->data.stacks,
		.n_rings = s->sources.rings.n,
	};

	memcpy(m.kernel_build_id, s->kernel.build_id,
	       sizeof(m.kernel_build_id));
	memcpy(m.vdso_build_id, s->kept_files.vdso_build_id,
	       sizeof(m.vdso_build_id));
	m.counts.n[SEAM_COUNT_AUX_BYTES] = recording->data.counts.n_aux_bytes;
	count_kept(m.counts.n, &recording->kept);
	seam_services_describe(&s->services, &m, recording->is_snapshot);
	return m;
}

int seam_recording_reserve_manifest(struct seam_recording *recording,
				    const struct seam_session *s,
				    struct seam_err *err)
{
	struct seam_manifest m = seam_recording_describe(recording, s);
	size_t bytes = MANIFEST_BYTES + MANIFEST_RING_BYTES * m.n_rings +
		       MANIFEST_TRIGGER_BYTES * m.n_triggers;
	int fd = seam_bundle_file(&recording->bundle, "meta.json", err);

	recording->meta = fd;
	if (fd < 0)
		return fd;
	/* a file system without fallocate() may run full later */
	if (fallocate(fd, 0, 0, (off_t)bytes) < 0 && errno == ENOSPC)
		return seam_err_set(err, -ENOSPC, "no space for %zu bytes of "
				    "'meta.json'", bytes);
	return 0;
}

static int put_manifest(struct seam_recording *recording,
			const struct seam_manifest *m, struct seam_err *err)
{
	int r = seam_manifest_write(recording->meta, m, err);

	close(recording->meta);
	recording->meta = -1;
	if (r == 0)
		return seam_bundle_publish(&recording->bundle, "meta.json",
					   err);
	seam_bundle_drop(&recording->bundle, "meta.json");
	return r;
}

int seam_recording_write_manifest(struct seam_recording *recording,
				  const struct seam_session *s,
				  bool is_complete, struct seam_err *err)
{
	struct seam_manifest m = seam_recording_describe(recording, s);
	struct seam_manifest_ring *rings = calloc(m.n_rings, sizeof(*rings));
	struct seam_manifest_event *by_event = calloc(m.n_events,
						      sizeof(*by_event));
	const char **events = calloc(m.n_events, sizeof(*events));
	struct seam_manifest_file *files = list_files(&s->kept_files,
						      &m.n_files);
	const char *left_out[sizeof(s->sources.left_out) * 8];
	struct utsname host;
	int r = -ENOMEM;

	if (rings && events && by_event && uname(&host) == 0) {
		m.complete = is_complete;
		m.host = host.nodename;
		m.release = host.release;
		m.arch = host.machine;
		for (size_t i = 0; i < m.n_events; i++)
			events[i] = s->events.items[i].name;
		m.events = events;
		m.left_out = left_out;
		m.n_left_out = list_left_out(s, left_out);
		list_rings(s, rings);
		m.rings = rings;
		m.files = files;
		m.by_event = by_event;
		m.n_by_event = list_by_event(recording, s, by_event);
		r = put_manifest(recording, &m, err);
	} else {
		seam_err_no_memory(err);
	}
	free(rings);
	free(by_event);
	free(files);
	free(events);
	return r;
}

static void close_files(struct seam_recording *recording)
{
	seam_data_file_fini(&recording->data);
	seam_file_close_fd(recording->meta);
	recording->meta = -1;
}

void seam_recording_remove(struct seam_recording *recording)
{
	/* first: a folder is opened, when there may be no descriptor left */
	close_files(recording);
	if (recording->bundle.dir >= 0)
		seam_bundle_remove(&recording->bundle);
}

void seam_recording_fini(struct seam_recording *recording)
{
	close_files(recording);
	seam_bundle_close(&recording->bundle);
}
