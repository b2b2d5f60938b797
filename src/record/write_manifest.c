/* SPDX-License-Identifier: MIT */
/* account.c - what a recording says of itself: features, manifest, counts */
#include "record/session.h"

#include "base/clock.h"
#include "record/finish_bundle.h"
#include "record/perf/aux_buffers.h"
#include "record/perf/header_info.h"
#include "wire/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Room for a manifest, without and for each ring. */
enum {
	MANIFEST_BYTES = 8192,
	MANIFEST_RING_BYTES = 256,
};

/* Returns how many; there is room for one an event. */
static size_t list_groups(const struct seam_session *s,
			  struct seam_perf_group *groups)
{
	size_t n = 0;

	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		if (event->leader == (int)i)
			groups[n++] = (struct seam_perf_group) {
				.leader = (uint32_t)i, .n_members = 1,
			};
		else if (event->leader >= 0)
			groups[n - 1].n_members++;
	}
	return n;
}

int seam_session_write_features(struct seam_session *s,
				  struct seam_err *err)
{
	struct seam_perf_features features;
	struct seam_perf_group *groups = calloc(s->events.n, sizeof(*groups));
	struct seam_info info = {
		.kernel = &s->kernel,
		.events = s->described,
		.n_events = s->events.n,
		.words = s->options->words,
		.n_words = s->options->n_words,
		.n_cpus = (uint32_t)s->sources.cpus.n,
		.first_ns = s->drain.in_file.first_ns,
		.last_ns = s->drain.in_file.last_ns,
		.start_wall_ns = s->start_wall_ns,
		.start_ns = s->start_ns,
		.compress = &s->compress,
		.aux = &s->aux,
		.kernel_clock = seam_aux_buffers_are_there(s),
	};
	int r;

	if (!groups)
		return seam_err_set(err, -ENOMEM, "out of memory");
	info.groups = groups;
	info.n_groups = list_groups(s, groups);
	seam_info_features(&info, &features);
	r = seam_perf_writer_finish(&s->writer, &features, err);
	seam_perf_features_fini(&features);
	free(groups);
	return r;
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
		       struct seam_manifest_ring *out, uint64_t *n_bad_bytes)
{
	for (size_t i = 0; i < s->sources.rings.n; i++) {
		const struct seam_source_ring *ring = &s->sources.rings.items[i];

		out[i] = (struct seam_manifest_ring) {
			.cpu = ring->cpu,
			.tid = ring->tid,
			.kind = seam_ring_use_name(ring->use),
			.area_bytes = ring->area_bytes,
			.size_bytes = ring->size_bytes,
			.n_records = ring->n_records,
			.n_bytes = ring->n_bytes,
			.n_lost = ring->n_lost,
		};
		*n_bad_bytes += ring->n_bad_bytes;
	}
}

static size_t list_by_event(const struct seam_session *s,
			    struct seam_manifest_event *out)
{
	for (size_t i = 0; i < s->result->n_events; i++)
		out[i] = (struct seam_manifest_event) {
			.name = s->result->events[i].name,
			.n_samples = s->result->events[i].n_samples,
			.n_lost = s->result->events[i].n_lost,
		};
	return s->result->n_events;
}

static struct seam_manifest describe(const struct seam_session *s,
				     bool complete)
{
	struct seam_manifest m = {
		.version = "seam " SEAM_VERSION,
		.complete = complete,
		.overwrite = s->options->overwrite,
		.snapshots = s->options->overwrite || s->sources.free_running,
		.words = s->options->words,
		.n_words = s->options->n_words,
		.boot_id = s->kernel.identity.boot_id,
		.kernel_build_id_size = s->kernel.identity.build_id_size,
		.kernel_text_addr = s->kernel.identity.text_addr,
		.start_wall_ns = s->start_wall_ns,
		.start_ns = s->start_ns,
		.duration_ns = s->result->duration_ns,
		.n_events = s->events.n,
		.n_samples = s->drain.in_file.n_samples,
		.n_throttled = s->drain.n_throttled,
		.n_lost = s->result->n_lost - s->result->n_paused,
		.n_paused = s->result->n_paused,
		.n_area_bytes = s->aux.n_bytes,
		.n_truncated = s->aux.n_truncated,
		.n_partial = s->aux.n_partial,
		.n_collision = s->aux.n_collision,
		.kernel_clock = seam_aux_buffers_are_there(s),
		.n_unwritten = s->drain.n_unwritten,
		.n_rings = s->sources.rings.n,
		.n_late = s->follow.n_late,
		.late_ns = s->follow.late_ns,
		.longest_late_ns = s->follow.longest_ns,
		.n_unseen = s->follow.n_unseen,
		.n_refused = s->follow.n_refused,
		.n_stopped = s->stopped.n_programs,
		.n_cpus_back = s->hotplug.n_back,
		.cpu_ns = s->hotplug.longest_ns,
		.n_cpus_new = s->hotplug.n_new,
		.n_jit_streams = s->link.dumps.n_streams,
		.n_jit = s->result->n_jit,
		.n_jit_lost = s->result->n_jit_lost,
		.n_jit_bad = s->link.dumps.n_bad,
		.n_jit_unproven = s->link.n_unproven,
		.kept = seam_kept_manifest(&s->kept),
	};

	memcpy(m.kernel_build_id, s->kernel.identity.build_id,
	       sizeof(m.kernel_build_id));
	m.vdso_build_id_size = s->keep->vdso_build_id_size;
	memcpy(m.vdso_build_id, s->keep->vdso_build_id,
	       sizeof(m.vdso_build_id));
	return m;
}

int seam_session_reserve_manifest(struct seam_session *s,
				    struct seam_err *err)
{
	size_t bytes = MANIFEST_BYTES +
		       MANIFEST_RING_BYTES * s->sources.rings.n;

	s->meta = seam_bundle_file(&s->bundle, "meta.json", err);
	if (s->meta < 0)
		return s->meta;
	/* not every file system can; then it is left to luck */
	if (fallocate(s->meta, 0, 0, (off_t)bytes) < 0 && errno == ENOSPC)
		return seam_err_set(err, -ENOSPC, "no space for %zu bytes of "
				    "'meta.json'", bytes);
	return 0;
}

static int put_manifest(struct seam_session *s, const struct seam_manifest *m,
			struct seam_err *err)
{
	int r = seam_manifest_write(s->meta, m, err);

	close(s->meta);
	s->meta = -1;
	if (r == 0)
		return seam_bundle_publish(&s->bundle, "meta.json", err);
	seam_bundle_drop(&s->bundle, "meta.json");
	return r;
}

int seam_session_write_manifest(struct seam_session *s, bool complete,
				  struct seam_err *err)
{
	struct seam_manifest m = describe(s, complete);
	struct seam_manifest_ring *rings = calloc(s->sources.rings.n,
						  sizeof(*rings));
	struct seam_manifest_event *by_event = calloc(s->events.n,
						      sizeof(*by_event));
	const char **events = calloc(s->events.n, sizeof(*events));
	const char *left_out[sizeof(s->sources.left_out) * 8];
	struct utsname host;
	int r = -ENOMEM;

	if (rings && events && by_event && uname(&host) == 0) {
		m.host = host.nodename;
		m.release = host.release;
		m.arch = host.machine;
		for (size_t i = 0; i < s->events.n; i++)
			events[i] = s->events.items[i].name;
		m.events = events;
		m.left_out = left_out;
		m.n_left_out = list_left_out(s, left_out);
		list_rings(s, rings, &m.n_bad_bytes);
		m.rings = rings;
		m.by_event = by_event;
		m.n_by_event = list_by_event(s, by_event);
		r = put_manifest(s, &m, err);
	} else {
		seam_err_set(err, r, "out of memory");
	}
	free(rings);
	free(by_event);
	free(events);
	return r;
}

void seam_session_note(const struct seam_session *s, bool verbose,
			 const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!s->options->note)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->options->note(s->options->context, verbose, text);
}

uint64_t seam_session_bytes(const struct seam_session *s)
{
	uint64_t bytes = s->writer.data_offset + s->writer.data_bytes;

	for (size_t i = 0; i < s->link.dumps.files.n; i++)
		bytes += s->link.dumps.files.items[i].n_bytes +
			 s->link.dumps.files.items[i].pending.n;
	return bytes;
}

uint64_t seam_session_sideband_id(const struct seam_session *s)
{
	return s->described[s->events.n - 1].ids[0];
}

int seam_session_append(struct seam_session *s, struct seam_synth *synth,
			  struct seam_err *err)
{
	struct iovec piece = {
		.iov_base = synth->bytes.items, .iov_len = synth->bytes.n,
	};
	int r = synth->no_memory ?
		seam_err_set(err, -ENOMEM, "out of memory") :
		seam_perf_writer_append(&s->writer, &piece, 1, err);

	seam_synth_fini(synth);
	return r;
}

/* LOST records are all there is where the kernel keeps no counts. */
static void count_told_losses(struct seam_session *s)
{
	for (size_t i = 0; i < s->sources.rings.n; i++)
		s->result->n_lost += s->sources.rings.items[i].n_lost;
}

/*
 * Loss is told by a LOST record in front of the next record that fits; what
 * no record follows is only in the kernel's counts, which are exact.
 */
int seam_session_write_losses(struct seam_session *s, struct seam_err *err)
{
	struct seam_synth synth = { 0 };
	/* the kernel's own clock is known by its records alone */
	uint64_t now_ns = seam_aux_buffers_are_there(s) ? s->drain.in_file.last_ns :
			  seam_clock_ns();

	for (size_t i = 0; i < s->sources.list.n; i++) {
		const struct seam_source *source = &s->sources.list.items[i];
		uint64_t lost = seam_sources_lost(&s->sources, i);

		if (!lost)
			continue;
		s->result->n_lost += lost;
		/* a ring that overwrites is never full */
		if (s->sources.rings.items[source->ring].is_backward)
			s->result->n_paused += lost;
		if (s->result->events)
			s->result->events[source->event].n_lost += lost;
		seam_synth_lost(&synth, source->id, (uint32_t)
				s->sources.rings.items[source->ring].cpu,
				now_ns, lost);
	}
	if (s->sources.left_out & SEAM_LEFT_OUT_LOST_COUNTS)
		count_told_losses(s);
	if (s->result->cut_short || synth.bytes.n == 0) {
		seam_synth_fini(&synth);
		return 0;
	}
	return seam_session_append(s, &synth, err);
}

int seam_recording_list_results(struct seam_session *s,
				struct seam_err *err)
{
	struct seam_record_result *result = s->result;

	result->events = calloc(s->events.n, sizeof(*result->events));
	if (!result->events)
		return seam_err_set(err, -ENOMEM, "out of memory");
	result->n_events = s->events.n - 1;
	result->area_event = NULL;
	for (size_t i = 0; i < s->events.n; i++) {
		snprintf(result->events[i].name,
			 sizeof(result->events[i].name), "%s",
			 s->events.items[i].name);
		result->events[i].n_samples = s->drain.n_by_event[i];
		if (s->events.items[i].aux_kind)
			result->area_event = result->events[i].name;
	}
	result->n_late = s->follow.n_late;
	result->late_ns = s->follow.late_ns;
	result->longest_late_ns = s->follow.longest_ns;
	result->n_unseen = s->follow.n_unseen;
	result->n_refused = s->follow.n_refused;
	if (s->follow.n_refused)
		snprintf(result->refusal, sizeof(result->refusal), "%.*s",
			 (int)sizeof(result->refusal) - 1,
			 s->follow.refusal.cause[0]);
	return 0;
}
