/* SPDX-License-Identifier: MIT */
/*
 * origin.h - where and when a recording was made, to identify its files
 *
 * An inode identifies a file only on the machine that recorded it.  An equal
 * boot id proves that machine, for one boot; an equal host name makes it
 * likely.  Times of the recording are converted to UTC and compared with those
 * of files.
 */
#pragma once

#include "model/profile/profile.h"
#include "symbol/symbols.h"
#include "wire/manifest.h"
#include "wire/perf/perf_data.h"

enum seam_origin_machine {
	SEAM_ORIGIN_HERE,
	SEAM_ORIGIN_ELSEWHERE,
	SEAM_ORIGIN_UNKNOWN,	/* not recorded */
};

struct seam_origin {
	enum seam_origin_machine machine;
	bool has_clock;		/* wall_ns and clock_ns are known: */
	uint64_t wall_ns;	/* UTC at time ... */
	uint64_t clock_ns;	/* ... of the recording's clock */
	uint64_t end_ns;	/* UTC of the last write */
};

/*
 * @manifest: NULL or zeroed where there is none.  @written_ns: UTC of the
 * file's last change.
 */
struct seam_origin seam_origin_of(const struct seam_perf_data *data,
				  const struct seam_manifest *manifest,
				  uint64_t written_ns);

/* Build ids of this machine's kernel and vdso; their sizes: 0 for none. */
struct seam_origin_ids {
	uint8_t kernel[20], vdso[20];
	size_t kernel_size, vdso_size;
};

/*
 * Those of this machine where the recording, which may have none, has the same:
 * it was made here, since the last boot, by this release of the kernel.  That
 * the kernel is the same has to be confirmed by the address of its text.
 */
void seam_origin_own_ids(const struct seam_origin *origin,
			 const struct seam_perf_data *data,
			 struct seam_origin_ids *ids);

/*
 * Set how the file of @module, if it has no build id, is identified today: by
 * inode and time, where these are evidence.  @m was recorded at @time_ns of the
 * recording's clock; 0: not known.
 */
void seam_origin_identify(const struct seam_origin *origin,
			  const struct seam_perf_mapping *m, uint64_t time_ns,
			  struct seam_profile_module *module);

/*
 * Those modules of @profile without a build id whose contents @manifest
 * identifies are found by these: on any machine, at any time.  0 or -ENOMEM.
 */
int seam_origin_identify_contents(struct seam_profile *profile,
				  const struct seam_manifest *manifest);

/* Module @id of @profile as one of @symbols; SEAM_NONE: no memory. */
uint32_t seam_origin_symbols(const struct seam_profile *profile, uint32_t id,
			     struct seam_symbols *symbols);
