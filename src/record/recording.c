/* SPDX-License-Identifier: MIT */
/* recording.c - what is in a bundle, and snapshots; see recording.h */
#include "record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/perf/auxtrace.h"
#include "record/session.h"
#include "ring/consumer.h"
#include "symbol/kernel/kernel.h"
#include "wire/manifest.h"

/* How long a snapshot may copy files. */
#define COPY_NS (2 * SEAM_NS_PER_S)

enum { FILE_WAIT_MS = 20 };	/* for a file's call frame information */

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

static void list_rings(const struct seam_session *s,
		       struct seam_manifest_ring *out)
{
	static const char *const uses[] = {
		[SEAM_RING_OF_SIDEBAND] = "sideband",
		[SEAM_RING_OF_SAMPLES] = "samples",
		[SEAM_RING_OF_AUX] = "area",
		[SEAM_RING_OF_SWITCHES] = "switches",
		[SEAM_RING_OF_STACKS] = "stacks",
	};

	for (size_t i = 0; i < s->sources.rings.n; i++) {
		const struct seam_source_ring *ring =
			&s->sources.rings.items[i];

		out[i] = (struct seam_manifest_ring) {
			.cpu = ring->cpu,
			.tid = ring->tid,
			.kind = uses[ring->use],
			.area_bytes = ring->aux_bytes,
			.size_bytes = ring->size_bytes,
			.n_records = ring->n_records,
			.n_bytes = ring->n_bytes,
			.n_lost = ring->n_lost,
		};
	}
}

_Static_assert(SEAM_COUNT_KEPT_INTERRUPTED - SEAM_COUNT_KEPT_GONE ==
	       SEAM_KEPT_INTERRUPTED - SEAM_KEPT_GONE, "in one order");

/* The mapped files without a build id; NULL: none, or no memory. */
static struct seam_manifest_file *list_files(const struct seam_kept_files *kept,
					     size_t *n)
{
	struct seam_manifest_file *files = kept->files.n ?
		calloc(kept->files.n, sizeof(*files)) : NULL;

	*n = 0;
	for (size_t i = 0; files && i < kept->files.n; i++) {
		const struct seam_kept_file *file = &kept->files.items[i];

		if (file->is.content_id)
			files[(*n)++] = (struct seam_manifest_file) {
				file->path, file->is.ino, file->is.content_id,
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
	const struct seam_kept_files_counts *kept = &recording->kept;
	uint64_t *n = m.counts.n;

	memcpy(m.kernel_build_id, s->kernel.build_id,
	       sizeof(m.kernel_build_id));
	memcpy(m.vdso_build_id, s->kept_files.vdso_build_id,
	       sizeof(m.vdso_build_id));
	n[SEAM_COUNT_AUX_BYTES] = recording->data.counts.n_aux_bytes;
	n[SEAM_COUNT_OFF_CPU_MIN_NS] = s->options->off_cpu.min_ns;
	/* set, of a copy without the first switches */
	if (!n[SEAM_COUNT_OFF_CPU_FROM_NS])
		n[SEAM_COUNT_OFF_CPU_FROM_NS] = s->switches_from_ns;
	n[SEAM_COUNT_OFF_CPU_SPENT] = s->switch_stacks.n_spent;
	memcpy(&n[SEAM_COUNT_OFF_CPU_READ], s->blocked.n,
	       sizeof(s->blocked.n));
	n[SEAM_COUNT_KEPT_FILES] = kept->files.n_copied;
	n[SEAM_COUNT_KEPT_FILE_BYTES] = kept->files.n_bytes;
	n[SEAM_COUNT_KEPT_DUMPS] = kept->jit.n_copied;
	n[SEAM_COUNT_KEPT_DUMP_BYTES] = kept->jit.n_bytes;
	for (size_t i = 0; i < SEAM_KEPT_N_CAUSES; i++)
		n[SEAM_COUNT_KEPT_GONE + i] = kept->files.n_left_out[i] +
					      kept->jit.n_left_out[i];
	SEAM_SERVICES_CALL(&s->services, describe, &m, recording->is_snapshot);
	return m;
}

static int reserve_manifest(struct seam_recording *recording,
			    const struct seam_manifest *m, struct seam_err *err)
{
	size_t bytes = MANIFEST_BYTES + MANIFEST_RING_BYTES * m->n_rings +
		       MANIFEST_TRIGGER_BYTES * m->n_triggers;
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

/* Write @m, and reserve the space of the next one. */
static int put_manifest(struct seam_recording *recording,
			const struct seam_manifest *m, struct seam_err *err)
{
	int r = recording->meta < 0 ? reserve_manifest(recording, m, err) : 0;

	if (r == 0)
		r = seam_manifest_write(recording->meta, m, err);
	seam_file_close_fd(recording->meta);
	recording->meta = -1;
	if (r < 0) {
		seam_bundle_drop(&recording->bundle, "meta.json");
		return r;
	}
	r = seam_bundle_publish(&recording->bundle, "meta.json", err);
	return r == 0 && !m->complete ? reserve_manifest(recording, m, err) : r;
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
	const struct seam_data_file_event *counts = recording->data.by_event;
	const char *left_out[sizeof(s->sources.left_out) * 8];
	struct utsname host;
	int r = -ENOMEM;

	if (rings && events && by_event && uname(&host) == 0) {
		m.complete = is_complete;
		m.host = host.nodename;
		m.release = host.release;
		m.arch = host.machine;
		for (size_t i = 0; i < m.n_events; i++) {
			events[i] = s->events.items[i].name;
			if (i == s->sources.sideband)
				continue;
			by_event[m.n_by_event++] =
				(struct seam_manifest_event) {
				.name = events[i],
				.n_samples = counts[i].n_samples,
				.n_lost = counts[i].n_lost,
			};
		}
		m.events = events;
		m.left_out = left_out;
		for (int i = 0; seam_left_out_name(i); i++)
			if (s->sources.left_out >> i & 1)
				left_out[m.n_left_out++] =
					seam_left_out_name(i);
		list_rings(s, rings);
		m.rings = rings;
		m.files = files;
		m.by_event = by_event;
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

void seam_recording_remove(struct seam_recording *recording)
{
	int dir = recording->bundle.dir;

	/* first: a folder is opened, when there may be no descriptor left */
	seam_data_file_fini(&recording->data);
	seam_file_close_fd(recording->meta);
	recording->meta = -1;
	if (dir >= 0)
		seam_bundle_remove(&recording->bundle);
}

void seam_recording_fini(struct seam_recording *recording)
{
	seam_data_file_fini(&recording->data);
	seam_file_close_fd(recording->meta);
	seam_bundle_close(&recording->bundle);
}

/* ---- features of perf.data: host, CPUs, events, clock ---- */

enum { MAX_PMUS = 128 };

/* The machine, its kernel and its CPUs. */
static void add_host(struct seam_perf_features *f, uint32_t n_online)
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
	struct utsname host;
	uint64_t kb;

	if (uname(&host) == 0) {
		seam_perf_features_string(f, SEAM_PERF_FEATURE_HOSTNAME,
					  host.nodename);
		seam_perf_features_string(f, SEAM_PERF_FEATURE_OSRELEASE,
					  host.release);
		seam_perf_features_string(f, SEAM_PERF_FEATURE_VERSION,
					  "seam " SEAM_VERSION);
		seam_perf_features_string(f, SEAM_PERF_FEATURE_ARCH,
					  host.machine);
	}
	seam_procfs_values("/proc/cpuinfo", cpu, N_VALUES);
	seam_perf_features_data(f, SEAM_PERF_FEATURE_NRCPUS, n, 2 * sizeof(*n));
	seam_perf_features_string(f, SEAM_PERF_FEATURE_CPUDESC, cpu[NAME].text);
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

int seam_recording_write_features(struct seam_recording *recording,
				  const struct seam_session *s,
				  struct seam_err *err)
{
	const struct seam_data_file *file = &recording->data;
	const struct seam_compress *c = &file->compress;
	const uint64_t times[] = { file->counts.first_ns,
				   file->counts.last_ns };
	/* version, kind (zstd), level, ratio, bytes of an unpacked record */
	const uint32_t compression[] = {
		1, 1, (uint32_t)c->level,
		(uint32_t)(c->n_out ? c->n_in / c->n_out : 1),
		SEAM_COMPRESS_CHUNK_BYTES,
	};
	bool is_monotonic = !seam_sources_has_aux(&s->sources);
	struct seam_perf_features f = { 0 };
	struct seam_perf_pmu pmus[MAX_PMUS];
	struct timespec resolution = { 0 };
	uint64_t resolution_ns;
	int r;

	/* in the order of the bits */
	if (s->kernel.text_addr)
		seam_perf_features_build_id(&f, "[kernel.kallsyms]",
			(struct seam_bytes) { s->kernel.build_id,
					      s->kernel.build_id_size });
	add_host(&f, (uint32_t)s->sources.cpus.n);
	seam_perf_features_cmdline(&f, s->options->words, s->options->n_words);
	seam_perf_features_events(&f, file->events, file->n_events);
	seam_perf_features_pmus(&f, pmus, seam_procfs_pmus(pmus, MAX_PMUS));
	add_groups(&f, &s->sources);
	if (file->auxtraces.n)
		seam_perf_features_auxtrace(&f, &file->auxtraces.items->offset,
					    file->auxtraces.n);
	if (file->counts.last_ns)
		seam_perf_features_data(&f, SEAM_PERF_FEATURE_SAMPLE_TIME,
					times, sizeof(times));
	clock_getres(CLOCK_MONOTONIC, &resolution);
	resolution_ns = (uint64_t)resolution.tv_nsec;
	if (is_monotonic)
		seam_perf_features_data(&f, SEAM_PERF_FEATURE_CLOCKID,
					&resolution_ns, sizeof(resolution_ns));
	if (c->level)
		seam_perf_features_data(&f, SEAM_PERF_FEATURE_COMPRESSED,
					compression, sizeof(compression));
	if (is_monotonic)
		seam_perf_features_clock(&f, CLOCK_MONOTONIC, s->start_wall_ns,
					 s->start_ns);
	r = seam_perf_writer_finish(&recording->data.writer, &f, err);
	seam_perf_features_fini(&f);
	return r;
}

/* ---- files for symbols ---- */

#define KERNEL_SYMBOLS "kernel.sym.zst"

/*
 * Each snapshot has the symbols of the kernel: all but the first are links to
 * one file, as long as no module is loaded or unloaded.
 */
static void copy_kernel(struct seam_recording *recording,
			struct seam_session *s)
{
	uint64_t modules = seam_kernel_modules();
	int dir = recording->bundle.dir, r;
	struct seam_err err = { 0 };
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->kernel_fd);
	if (s->kernel_fd > 0 && modules && s->kernel_modules == modules &&
	    linkat(AT_FDCWD, path, dir, KERNEL_SYMBOLS,
		   AT_SYMLINK_FOLLOW) == 0)
		return;
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

/*
 * One line for each cause; the first error is in the line of its cause.  True:
 * @counts are incomplete for another cause than the files themselves.
 */
static bool report_kept(const struct seam_session *s, const char *kind,
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
	return counts->n_left_out[SEAM_KEPT_NOT_WRITTEN] ||
	       counts->n_left_out[SEAM_KEPT_INTERRUPTED];
}

void seam_recording_add_files(struct seam_recording *recording,
			      struct seam_session *s)
{
	uint64_t max = s->options->max_bytes;
	uint64_t used = seam_session_bytes(s, &recording->data);
	/* the bytes of --max-size that are left for files beside "data" */
	const struct seam_kept_destination to = {
		.bundle = &recording->bundle,
		.is_snapshot = recording->is_snapshot,
		.budget_bytes = !max ? UINT64_MAX : used < max ? max - used : 0,
		.wait = seam_session_wait, .context = s,
	};
	const struct seam_kept_files_counts *kept = &recording->kept;

	if (recording->data.counts.n_kernel_samples)
		copy_kernel(recording, s);
	seam_kept_files_copy(&s->kept_files, &to, &recording->kept);
	if (kept->files.n_copied)
		seam_session_note(s, true, "%" PRIu64 " mapped files copied",
				  kept->files.n_copied);
	recording->skipped |= report_kept(s, "mapped files", &kept->files);
	if (s->kept_files.n_hits_left_out)
		seam_session_note(s, false, "%" PRIu64 " pages and mappings "
			"ignored by --keep-files: too many",
			s->kept_files.n_hits_left_out);
	recording->skipped |= report_kept(s, "jitdumps or perf maps",
					  &kept->jit);
}

/* ---- snapshots: pause, copy, resume, write in order ---- */

/* Records for the file, oldest first. */
struct records {
	uint8_t *items;
	size_t n, cap;
};

static bool is_copied(const struct seam_source_ring *ring)
{
	return ring->is_backward && ring->fd >= 0;
}

static void pause_all(const struct seam_sources *sources, unsigned int pause)
{
	for (size_t i = 0; i < sources->rings.n; i++)
		if (is_copied(&sources->rings.items[i]))
			ioctl(sources->rings.items[i].fd,
			      PERF_EVENT_IOC_PAUSE_OUTPUT, pause);
}

/*
 * Append the records of @span, which are newest first, to @out, oldest first.
 * The counts of the ring become those of its current contents.
 */
static int put_in_order(struct seam_drain *drain, struct seam_source_ring *ring,
			const struct seam_ring_span *span, struct records *out,
			struct seam_err *err)
{
	size_t bytes = seam_ring_span_bytes(span), pos = 0, at = bytes;
	struct seam_ring_header header;
	uint8_t *base;

	if (!SEAM_ARRAY_RESERVE(out, bytes + 1))
		return seam_err_no_memory(err);
	base = out->items + out->n;
	ring->n_records = ring->n_bytes = ring->n_lost = 0;
	for (; seam_ring_record(span, pos, &header) && header.size <= at;
	     pos += header.size) {
		const void *from;

		if (!seam_drain_count(drain, ring, span, pos, &header))
			continue;
		at -= header.size;
		ring->n_bytes += header.size;
		from = seam_ring_bytes(span, pos, header.size, base + at);
		if (from != base + at)
			memcpy(base + at, from, header.size);
	}
	memmove(base, base + at, bytes - at);
	out->n += bytes - at;
	return 0;
}

static int append(struct seam_data_file *file, const uint8_t *bytes, size_t n,
		  struct seam_err *err)
{
	struct iovec piece = { (void *)(uintptr_t)bytes, n };

	return n ? seam_perf_writer_append(&file->writer, &piece, 1, err) : 0;
}

/*
 * Append @records with the stacks unwound.  The call frame information of files
 * is read when the first sample is in them: with the first snapshot.
 */
static int append_unwound(struct seam_session *s, struct seam_drain *drain,
			  const struct records *records, struct seam_err *err)
{
	struct seam_live_stacks *stacks = drain->stacks;
	struct seam_stack_counts *counts = stacks->counts;
	struct seam_data_file *file = drain->file;
	size_t at = 0, taken, n_idle = 0;
	bool is_busy;
	int fd = -1, r;

	stacks->counts = &file->stacks;
	seam_live_stacks_begin_round(stacks, false);
	do {
		taken = seam_drain_unwind(drain, records->items + at,
					  records->n - at);
		at += taken;
		r = append(file, stacks->out.items, stacks->out.n, err);
		is_busy = seam_live_stacks_is_busy(stacks, &fd) &&
			  seam_session_wait(s, fd, FILE_WAIT_MS);
		/* at last with what is known */
		seam_live_stacks_begin_round(stacks, !is_busy || r < 0);
		/* no sample waits then: the next time some are taken */
		n_idle = taken || is_busy ? 0 : n_idle + 1;
	} while (r == 0 && (is_busy || (at < records->n && n_idle < 2)));
	if (r == 0)
		r = append(file, stacks->out.items, stacks->out.n, err);
	file->losses.n[SEAM_COUNT_UNWRITTEN] += stacks->n_dropped;
	stacks->n_dropped = 0;
	stacks->counts = counts;
	return r;
}

/* Records that were kept in place of the file. */
static int append_counted(struct seam_drain *drain, const uint8_t *records,
			  size_t n, struct seam_err *err)
{
	seam_drain_count_all(drain, records, n);
	return append(drain->file, records, n, err);
}

/* The newest switches, and stacks that were read, which are unwound. */
static int append_history(const struct seam_session *s,
			  struct seam_drain *drain, struct seam_err *err)
{
	struct seam_data_file *file = drain->file;
	struct seam_switch_copy copy = { .records.n = 0 };
	int r = seam_switch_history_copy(&s->history, &copy,
			&file->losses.n[SEAM_COUNT_OFF_CPU_FROM_NS], err);

	if (r == 0)
		r = append_counted(drain, copy.records.items, copy.records.n,
				   err);
	free(copy.records.items);
	return r;
}

int seam_snapshot_append(struct seam_session *s, struct seam_data_file *file,
			 struct seam_err *err)
{
	struct seam_source_ring *rings = s->sources.rings.items;
	size_t n = s->sources.rings.n;
	struct seam_ring_snapshot *copies = calloc(n, sizeof(*copies));
	const struct seam_newest_records *guests = &s->drain.guests;
	struct seam_drain drain = s->drain;
	struct records out = { 0 };
	int r = copies ? 0 : seam_err_no_memory(err);

	drain.file = file;
	/* all memory first: the rings are paused only for the copies */
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_copied(&rings[i]))
			r = seam_ring_snapshot_init(&copies[i],
						    rings[i].size_bytes, err);
	pause_all(&s->sources, r == 0);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_copied(&rings[i]))
			seam_ring_snapshot(&rings[i].ring, &copies[i]);
	pause_all(&s->sources, 0);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_copied(&rings[i]))
			r = put_in_order(&drain, &rings[i], &copies[i].span,
					 &out, err);
	if (r == 0)
		r = drain.stacks ? append_unwound(s, &drain, &out, err) :
				   append(file, out.items, out.n, err);
	if (r == 0 && drain.history)
		r = append_history(s, &drain, err);
	file->losses.n[SEAM_COUNT_GUEST_FROM_NS] = drain.guests_from_ns;
	if (r == 0 && guests->bytes.n)
		r = append_counted(&drain, guests->bytes.items + guests->first,
				   guests->bytes.n - guests->first, err);
	free(out.items);
	for (size_t i = 0; copies && i < n; i++)
		seam_ring_snapshot_fini(&copies[i]);
	free(copies);
	return r;
}

void seam_snapshot_name(char *buf, size_t cap, const char *name, unsigned int n)
{
	size_t length = strlen(name);

	while (length > 1 && name[length - 1] == '/')
		length--;
	if (length > 5 && memcmp(name + length - 5, ".seam", 5) == 0)
		length -= 5;
	snprintf(buf, cap, "%.*s.%u.seam", (int)length, name, n);
}

/* "data": the recording's own file so far, rings, AUX buffers, the end. */
static int write_data(struct seam_recording *recording, struct seam_session *s,
		      struct seam_err *err)
{
	int fd = seam_bundle_file(&recording->bundle, "data", err);
	int r = fd < 0 ? fd : seam_data_file_copy(&recording->data, fd,
						  &s->recording.data, err);

	if (r == 0)
		r = seam_snapshot_append(s, &recording->data, err);
	if (r == 0 && s->sources.aux_snapshots) {
		r = seam_auxtrace_snapshot_all(&s->sources, &recording->data,
					       err);
		seam_sources_hold_aux(&s->sources, false);
	}
	if (r == 0)
		r = seam_data_file_write_losses(&recording->data, &s->sources,
						false, err);
	if (r == 0)
		r = seam_recording_write_features(recording, s, err);
	return r == 0 ? seam_bundle_publish(&recording->bundle, "data", err) :
	       r;
}

/* Where it is, and which trigger it is for. */
static void report_snapshot(const struct seam_session *s, const char *name)
{
	char why[400] = "", others[32] = "";
	struct seam_manifest m = { 0 };
	size_t n;

	SEAM_SERVICES_CALL(&s->services, describe, &m, true);
	n = m.n_triggers;
	if (n)
		seam_manifest_trigger_describe(why, sizeof(why), m.triggers,
					       s->start_ns);
	if (n > 1)
		snprintf(others, sizeof(others), "; %zu more", n - 1);
	seam_session_note(s, false, "snapshot in '%s'%s%s%s%s", name,
			  n ? " (" : "", why, others, n ? ")" : "");
}

int seam_snapshot_make(struct seam_session *s, unsigned int n,
		       struct seam_err *err)
{
	struct seam_recording recording;
	char name[sizeof(recording.bundle.path)];
	int r;

	seam_snapshot_name(name, sizeof(name), s->options->output, n);
	seam_recording_init(&recording);
	recording.is_snapshot = true;
	recording.duration_ns = seam_clock_ns() - s->start_ns;
	r = seam_bundle_create(&recording.bundle, name, err);
	/* first: programs that have met a trigger wait for it */
	if (r == 0)
		r = seam_services_copy_to(&s->services, &recording.bundle, err);
	/* samplers' samples of the time since then: the rings have the others */
	if (r == 0 && s->drain.guests.max_bytes)
		seam_rounds_drain(s);
	seam_session_allow(s, COPY_NS);
	if (r == 0)
		r = write_data(&recording, s, err);
	if (r == 0) {
		seam_recording_add_files(&recording, s);
		r = seam_recording_write_manifest(&recording, s, true, err);
	}
	if (r == 0)
		r = seam_bundle_place(&recording.bundle, err);
	if (r == 0) {
		seam_bundle_settle(&recording.bundle);
		report_snapshot(s, name);
	} else {
		seam_recording_remove(&recording);
		seam_err_add(err, r, "no snapshot in '%s'", name);
	}
	seam_recording_fini(&recording);
	return r;
}
