/* SPDX-License-Identifier: MIT */
/* features.c - features of perf.data: host, CPUs, events, clock; recording.h */
#include "record/session.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

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
