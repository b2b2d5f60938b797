/* SPDX-License-Identifier: MIT */
/* recording.c - what is in a bundle: manifest, features, files; recording.h */
#include "record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "record/session.h"
#include "symbol/kernel/kernel_cache.h"
#include "wire/manifest.h"

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

/* ---- features of perf.data: host, CPUs, events, clock ---- */

enum { MAX_PMUS = 128 };

static void add_host(struct seam_perf_features *f)
{
	struct utsname host;

	if (uname(&host) < 0)
		return;
	seam_perf_features_string(f, SEAM_PERF_FEATURE_HOSTNAME,
				  host.nodename);
	seam_perf_features_string(f, SEAM_PERF_FEATURE_OSRELEASE,
				  host.release);
	seam_perf_features_string(f, SEAM_PERF_FEATURE_VERSION,
				  "seam " SEAM_VERSION);
	seam_perf_features_string(f, SEAM_PERF_FEATURE_ARCH, host.machine);
}

static void add_cpus(struct seam_perf_features *f, uint32_t n_online)
{
	/* perf's order: available, online */
	uint32_t n[2] = { (uint32_t)sysconf(_SC_NPROCESSORS_CONF), n_online };
	enum { NAME, VENDOR, FAMILY, MODEL, STEPPING, N_VALUES };
	struct seam_procfs_value cpu[N_VALUES] = {
		[NAME].key = "model name", [VENDOR].key = "vendor_id",
		[FAMILY].key = "cpu family", [MODEL].key = "model",
		[STEPPING].key = "stepping",
	};
	char text[4 * sizeof(cpu[0].text)];
	uint64_t kb;

	seam_procfs_values("/proc/cpuinfo", cpu, N_VALUES);
	seam_perf_features_data(f, SEAM_PERF_FEATURE_NRCPUS, n, 2 * sizeof(*n));
	seam_perf_features_string(f, SEAM_PERF_FEATURE_CPUDESC,
				  cpu[NAME].text);
	/* perf's form on x86: vendor,family,model,stepping */
	snprintf(text, sizeof(text), "%s,%s,%s,%s", cpu[VENDOR].text,
		 cpu[FAMILY].text, cpu[MODEL].text, cpu[STEPPING].text);
	if (cpu[VENDOR].text[0])
		seam_perf_features_string(f, SEAM_PERF_FEATURE_CPUID, text);
	kb = strtoull(seam_procfs_value("/proc/meminfo", "MemTotal", text,
					sizeof(text)), NULL, 10);
	seam_perf_features_data(f, SEAM_PERF_FEATURE_TOTAL_MEM, &kb,
				sizeof(kb));
}

/* Version, kind (zstd), level, ratio, bytes of an unpacked record. */
static void add_compression(struct seam_perf_features *f,
			    const struct seam_compress *c)
{
	uint32_t values[5] = {
		1, 1, (uint32_t)c->level,
		(uint32_t)(c->n_out ? c->n_in / c->n_out : 1),
		SEAM_COMPRESS_CHUNK_BYTES,
	};

	if (c->level)
		seam_perf_features_data(f, SEAM_PERF_FEATURE_COMPRESSED,
					values, sizeof(values));
}

static void add_clock(struct seam_perf_features *f,
		      const struct seam_session *s,
		      const struct seam_compress *compress)
{
	bool is_monotonic = !seam_sources_has_aux(&s->sources);
	struct timespec resolution = { 0 };
	uint64_t ns;

	clock_getres(CLOCK_MONOTONIC, &resolution);
	ns = (uint64_t)resolution.tv_nsec;
	if (is_monotonic)
		seam_perf_features_data(f, SEAM_PERF_FEATURE_CLOCKID, &ns,
					sizeof(ns));
	add_compression(f, compress);	/* in the order of the bits */
	if (is_monotonic)
		seam_perf_features_clock(f, CLOCK_MONOTONIC, s->start_wall_ns,
					 s->start_ns);
}

/* Consecutive events with one leader are a group. */
static void add_groups(struct seam_perf_features *f,
		       const struct seam_sources *sources)
{
	struct seam_perf_group *groups = calloc(sources->n_events,
						sizeof(*groups));
	size_t n = 0;

	for (size_t i = 0; groups && i < sources->n_events; i++) {
		int leader = sources->events[i].leader;

		if (leader == (int)i)
			groups[n++] = (struct seam_perf_group) {
				.leader = (uint32_t)i, .n_members = 1,
			};
		else if (leader >= 0)
			groups[n - 1].n_members++;
	}
	f->no_memory |= !groups;
	seam_perf_features_groups(f, groups, n);
	free(groups);
}

static void add_all(struct seam_perf_features *f, const struct seam_session *s,
		    const struct seam_data_file *file)
{
	const uint64_t times[] = { file->counts.first_ns,
				   file->counts.last_ns };
	struct seam_perf_pmu pmus[MAX_PMUS];

	if (s->kernel.text_addr)
		seam_perf_features_build_id(f, "[kernel.kallsyms]",
			(struct seam_bytes) { s->kernel.build_id,
					      s->kernel.build_id_size });
	add_host(f);
	add_cpus(f, (uint32_t)s->sources.cpus.n);
	seam_perf_features_cmdline(f, s->options->words,
				   s->options->n_words);
	seam_perf_features_events(f, file->events, file->n_events);
	seam_perf_features_pmus(f, pmus, seam_procfs_pmus(pmus, MAX_PMUS));
	add_groups(f, &s->sources);
	if (file->auxtraces.n)
		seam_perf_features_auxtrace(f, &file->auxtraces.items->offset,
					    file->auxtraces.n);
	if (file->counts.last_ns)
		seam_perf_features_data(f, SEAM_PERF_FEATURE_SAMPLE_TIME,
					times, sizeof(times));
	add_clock(f, s, &file->compress);
}

int seam_recording_write_features(struct seam_recording *recording,
				  const struct seam_session *s,
				  struct seam_err *err)
{
	struct seam_perf_features features = { 0 };
	int r;

	add_all(&features, s, &recording->data);
	r = seam_perf_writer_finish(&recording->data.writer, &features, err);
	seam_perf_features_fini(&features);
	return r;
}

/* ---- files for symbols ---- */

#define KERNEL_SYMBOLS "kernel.sym.zst"

/* Link the last copy.  False: no copy, other modules, another file system. */
static bool link_kernel(const struct seam_session *s, int dir)
{
	char path[32];

	if (s->kernel_fd <= 0 || !s->kernel_modules ||
	    s->kernel_modules != seam_kernel_modules())
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->kernel_fd);
	return linkat(AT_FDCWD, path, dir, KERNEL_SYMBOLS,
		      AT_SYMLINK_FOLLOW) == 0;
}

/*
 * Each snapshot has the symbols of the kernel: all but the first are links to
 * one file, as long as no module is loaded or unloaded.
 */
static void copy_kernel(struct seam_recording *recording,
			struct seam_session *s)
{
	int dir = recording->bundle.dir, r;
	struct seam_err err = { 0 };
	uint64_t modules;

	if (link_kernel(s, dir))
		return;
	modules = seam_kernel_modules();
	r = seam_kernel_capture(dir, KERNEL_SYMBOLS, &err);
	if (r == 0) {
		if (s->kernel_fd > 0)
			close(s->kernel_fd);
		s->kernel_fd = openat(dir, KERNEL_SYMBOLS, O_RDONLY |
				      O_NOFOLLOW | O_CLOEXEC);
		s->kernel_modules = modules;
		return;
	}
	seam_session_note(s, false, "the kernel's symbols were not copied: %s",
			  err.cause[0]);
	/* what this user may not read is not counted as skipped */
	recording->skipped |= r != -EACCES && r != -EPERM;
}

/* One line for each cause; the first error is in the line of its cause. */
static void report(const struct seam_session *s, const char *kind,
		   const struct seam_kept_counts *counts)
{
	for (size_t i = 0; i < SEAM_KEPT_N_CAUSES; i++) {
		bool has_why = counts->why.n_causes && i == counts->why_cause;

		if (counts->n_left_out[i])
			seam_session_note(s, false, "%" PRIu64 " %s %s%s%s",
					  counts->n_left_out[i], kind,
					  seam_count_rows[SEAM_COUNT_KEPT_GONE +
							  i].part,
					  has_why ? ": " : "",
					  has_why ? counts->why.cause[0] : "");
	}
}

static void report_hits(const struct seam_session *s)
{
	if (s->kept_hits.n_left_out)
		seam_session_note(s, false, "%" PRIu64 " pages and mappings "
			"ignored by --keep-files: too many",
			s->kept_hits.n_left_out);
}

/* The bytes of --max-size that are left for files beside "data". */
static uint64_t budget(const struct seam_recording *recording,
		       const struct seam_session *s)
{
	uint64_t max = s->options->max_bytes, used;

	if (!max)
		return UINT64_MAX;
	used = seam_session_bytes(s, &recording->data);
	return used < max ? max - used : 0;
}

static bool is_incomplete(const struct seam_kept_counts *counts)
{
	return counts->n_left_out[SEAM_KEPT_NOT_WRITTEN] ||
	       counts->n_left_out[SEAM_KEPT_INTERRUPTED];
}

void seam_recording_add_files(struct seam_recording *recording,
			      struct seam_session *s)
{
	const struct seam_kept_destination to = {
		.bundle = &recording->bundle,
		.is_snapshot = recording->is_snapshot,
		.budget_bytes = budget(recording, s),
		.wait = seam_session_wait, .context = s,
	};
	const struct seam_kept_files_counts *kept = &recording->kept;

	if (recording->data.counts.n_kernel_samples)
		copy_kernel(recording, s);
	if (s->options->keep_files)
		seam_kept_hits_mark(&s->kept_hits, &s->kept_files);
	seam_kept_files_copy(&s->kept_files, &to, &recording->kept);
	if (kept->files.n_copied)
		seam_session_note(s, true, "%" PRIu64 " mapped files copied",
				  kept->files.n_copied);
	report(s, "mapped files", &kept->files);
	report_hits(s);
	report(s, "jitdumps or perf maps", &kept->jit);
	recording->skipped |= is_incomplete(&kept->files) ||
			      is_incomplete(&kept->jit);
}
