/* SPDX-License-Identifier: MIT */
/* header_info.c - the features of a recording; see header_info.h */
#include "record/perf/header_info.h"

#include "record/proc/procfs.h"

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
	/* In the order in which perf writes them: available, online. */
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
	seam_perf_features_u32(f, SEAM_PERF_FEATURE_NRCPUS, n, 2);
	seam_perf_features_string(f, SEAM_PERF_FEATURE_CPUDESC,
				  cpu[NAME].text);
	/* perf's form of it on x86: vendor,family,model,stepping */
	snprintf(text, sizeof(text), "%s,%s,%s,%s", cpu[VENDOR].text,
		 cpu[FAMILY].text, cpu[MODEL].text, cpu[STEPPING].text);
	if (cpu[VENDOR].text[0])
		seam_perf_features_string(f, SEAM_PERF_FEATURE_CPUID, text);
	kb = strtoull(seam_procfs_value("/proc/meminfo", "MemTotal", text,
					 sizeof(text)), NULL, 10);
	seam_perf_features_u64(f, SEAM_PERF_FEATURE_TOTAL_MEM, &kb, 1);
}

/* version, kind (zstd), level, ratio, bytes that a record unpacks to */
static void add_compression(struct seam_perf_features *f,
			    const struct seam_compress *c)
{
	uint32_t values[5] = {
		1, 1, (uint32_t)c->level,
		(uint32_t)(c->n_out ? c->n_in / c->n_out : 1),
		SEAM_COMPRESS_CHUNK_BYTES,
	};

	if (c->stream)
		seam_perf_features_u32(f, SEAM_PERF_FEATURE_COMPRESSED,
				       values, 5);
}

static void add_clock(struct seam_perf_features *f,
		      const struct seam_info *info)
{
	struct timespec resolution = { 0 };
	uint64_t ns;

	clock_getres(CLOCK_MONOTONIC, &resolution);
	ns = (uint64_t)resolution.tv_nsec;
	if (!info->kernel_clock)
		seam_perf_features_u64(f, SEAM_PERF_FEATURE_CLOCKID, &ns, 1);
	add_compression(f, info->compress);	/* in the order of the bits */
	if (info->kernel_clock)
		return;
	seam_perf_features_clock(f, CLOCK_MONOTONIC, info->start_wall_ns,
				 info->start_ns);
}

void seam_info_features(const struct seam_info *info,
			struct seam_perf_features *f)
{
	const struct seam_kernel_identity *kernel = &info->kernel->identity;
	uint64_t times[2] = { info->first_ns, info->last_ns };
	struct seam_perf_pmu pmus[MAX_PMUS];

	*f = (struct seam_perf_features) { 0 };
	if (kernel->text_addr)
		seam_perf_features_build_id(f, "[kernel.kallsyms]",
			(struct seam_bytes) { kernel->build_id,
					      kernel->build_id_size });
	add_host(f);
	add_cpus(f, info->n_cpus);
	seam_perf_features_cmdline(f, info->words, info->n_words);
	seam_perf_features_events(f, info->events, info->n_events);
	seam_perf_features_pmus(f, pmus, seam_procfs_pmus(pmus, MAX_PMUS));
	seam_perf_features_groups(f, info->groups, info->n_groups);
	if (info->aux->index.n)
		seam_perf_features_auxtrace(f,
					    &info->aux->index.items->offset,
					    info->aux->index.n);
	if (info->last_ns)
		seam_perf_features_u64(f, SEAM_PERF_FEATURE_SAMPLE_TIME, times,
				       2);
	add_clock(f, info);
}
