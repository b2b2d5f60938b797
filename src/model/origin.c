/* SPDX-License-Identifier: MIT */
/* origin.c - machine and clock of a recording; see origin.h */
#include "model/origin.h"

#include <sys/utsname.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/index.h"
#include "symbol/elf/build_id.h"
#include "symbol/kernel/kernel.h"

/*
 * Clocks drift apart by 500 ppm at most (NTP's limit).  A file that changed
 * less than this after it was mapped counts as unchanged.
 */
#define DRIFT_DIVISOR 2000
#define CLOCK_STEP_NS 1000000u

static enum seam_origin_machine
find_machine(const struct seam_perf_data *data,
	     const struct seam_manifest *manifest)
{
	const char *host = manifest ? manifest->host : NULL;
	char boot_id[SEAM_BOOT_ID_TEXT];
	struct utsname own;

	seam_kernel_boot_id(boot_id);
	if (manifest && manifest->boot_id && boot_id[0] &&
	    strcmp(manifest->boot_id, boot_id) == 0)
		return SEAM_ORIGIN_HERE;
	if (!host || !*host)
		host = seam_perf_data_string(data, SEAM_PERF_FEATURE_HOSTNAME);
	if (!host || !*host || uname(&own) < 0)
		return SEAM_ORIGIN_UNKNOWN;
	return strcmp(host, own.nodename) == 0 ? SEAM_ORIGIN_HERE :
	       SEAM_ORIGIN_ELSEWHERE;
}

struct seam_origin seam_origin_of(const struct seam_perf_data *data,
				  const struct seam_manifest *manifest,
				  uint64_t written_ns)
{
	struct seam_bytes bytes = data->features[SEAM_PERF_FEATURE_CLOCK_DATA];
	struct seam_cursor c = seam_cursor_over(bytes, data->endian);
	struct seam_origin origin = {
		.machine = find_machine(data, manifest), .end_ns = written_ns,
	};

	if (manifest && manifest->start_wall_ns && !manifest->kernel_clock) {
		origin.wall_ns = manifest->start_wall_ns;
		origin.clock_ns = manifest->start_ns;
		origin.has_clock = true;
		return origin;
	}
	/* the feature that perf writes with -k: version, clock, two times */
	seam_cursor_skip(&c, 8);
	origin.wall_ns = seam_cursor_u64(&c);
	origin.clock_ns = seam_cursor_u64(&c);
	origin.has_clock = !c.error;
	return origin;
}

/* @time_ns as UTC; the end where that is earlier or the clock not known. */
static uint64_t to_utc(const struct seam_origin *origin, uint64_t time_ns)
{
	uint64_t since = time_ns - origin->clock_ns, utc;

	if (!origin->has_clock || time_ns < origin->clock_ns)
		return origin->end_ns;
	utc = origin->wall_ns + since + since / DRIFT_DIVISOR +
	      CLOCK_STEP_NS;
	return origin->end_ns && utc > origin->end_ns ? origin->end_ns : utc;
}

void seam_origin_own_ids(const struct seam_origin *origin,
			 const struct seam_perf_data *data,
			 struct seam_origin_ids *ids)
{
	const char *release = seam_perf_data_string(data,
						SEAM_PERF_FEATURE_OSRELEASE);
	struct utsname own;

	*ids = (struct seam_origin_ids) { 0 };
	if (origin->machine != SEAM_ORIGIN_HERE || !release ||
	    uname(&own) < 0 || strcmp(own.release, release) != 0 ||
	    /* before this boot */
	    origin->end_ns <= seam_clock_now(CLOCK_REALTIME) -
			      seam_clock_now(CLOCK_BOOTTIME))
		return;
	seam_own_vdso(ids->vdso, &ids->vdso_size);
	ids->kernel_size = seam_kernel_build_id(ids->kernel);
}

void seam_origin_identify(const struct seam_origin *origin,
			  const struct seam_perf_mapping *m, uint64_t time_ns,
			  struct seam_profile_module *module)
{
	bool is_known = origin->machine == SEAM_ORIGIN_HERE ||
			(origin->machine == SEAM_ORIGIN_UNKNOWN && m->ino);

	module->evidence = is_known ? SEAM_EVIDENCE_INODE :
			   SEAM_EVIDENCE_NONE;
	module->ino = m->ino;
	module->ino_generation = m->ino_generation;
	module->mapped_ns = to_utc(origin, time_ns);
}

static uint64_t hash_of(const struct seam_manifest_file *file)
{
	return seam_hash_add(seam_hash_bytes(file->path, strlen(file->path),
					     0), file->ino);
}

int seam_origin_identify_contents(struct seam_profile *profile,
				  const struct seam_manifest *manifest)
{
	const struct seam_manifest_file *files = manifest->files;
	struct seam_index index = { 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < manifest->n_files; i++)
		r = seam_index_add(&index, hash_of(&files[i]), i);
	for (size_t i = 0; r == 0 && i < profile->modules.n; i++) {
		struct seam_profile_module *m = &profile->modules.items[i];
		const struct seam_manifest_file want = {
			.path = seam_profile_text(profile, m->path),
			.ino = m->ino,
		};
		uint32_t k = m->kind != SEAM_MODULE_FILE || m->build_id_size ?
			     SEAM_NONE : SEAM_INDEX_FIND(&index,
			hash_of(&want), f, files[f].ino == want.ino &&
			strcmp(files[f].path, want.path) == 0);

		if (k == SEAM_NONE)
			continue;
		m->evidence = SEAM_EVIDENCE_CONTENTS;
		m->content_id = files[k].content_id;
	}
	seam_index_fini(&index);
	return r;
}

uint32_t seam_origin_symbols(const struct seam_profile *profile, uint32_t id,
			     struct seam_symbols *symbols)
{
	const struct seam_profile_module *m = &profile->modules.items[id];

	if (m->kind == SEAM_MODULE_KERNEL ||
	    m->kind == SEAM_MODULE_KERNEL_MODULE) {
		m = &profile->modules.items[profile->kernel];
		return seam_symbols_kernel(symbols, &(struct seam_kernel) {
			.boot_id = seam_profile_text(profile, profile->boot_id),
			.build_id = m->build_id_size ? m->build_id : NULL,
			.build_id_size = m->build_id_size,
			.text_addr = m->text_addr,
		});
	}
	return seam_symbols_module(symbols, &(struct seam_module) {
		.path = seam_profile_text(profile, m->path), .pid = m->pid,
		.build_id = m->build_id_size ? m->build_id : NULL,
		.build_id_size = m->build_id_size,
		.evidence = (enum seam_evidence)m->evidence, .ino = m->ino,
		.ino_generation = m->ino_generation,
		.mapped_ns = m->mapped_ns, .content_id = m->content_id,
	});
}
