/* SPDX-License-Identifier: MIT */
/*
 * origin.h - whether a recording was made on this machine, and when
 *
 * An inode means something on the machine that it was recorded on.  The boot
 * id says that surely, for one boot; the host's name says it as well as it can
 * be said.  Times of the recording become UTC, to be compared with files'.
 */
#ifndef SEAM_ORIGIN_H
#define SEAM_ORIGIN_H

#include "symbol/symbols.h"
#include "wire/manifest.h"
#include "wire/perf/perf_data.h"

enum seam_origin_machine {
	SEAM_ORIGIN_HERE,
	SEAM_ORIGIN_ELSEWHERE,
	SEAM_ORIGIN_UNKNOWN,	/* the recording does not say */
};

struct seam_origin {
	enum seam_origin_machine machine;
	bool has_clock;		/* how its clock relates to UTC */
	uint64_t wall_ns;	/* UTC ... */
	uint64_t clock_ns;	/* ... at this time of its clock */
	uint64_t end_ns;	/* UTC when it was written at the latest */
};

/*
 * @manifest: NULL or zeroed where there is none.  @written_ns: when the file
 * was changed last, UTC.
 */
struct seam_origin seam_origin_of(const struct seam_perf_data *data,
				  const struct seam_manifest *manifest,
				  uint64_t written_ns);

/*
 * What is to be demanded of a file found today that has no recorded build id,
 * into @module.  @m was recorded at @time_ns of the recording's clock; 0: at no
 * known time.
 */
void seam_origin_demand(const struct seam_origin *origin,
			const struct seam_perf_mapping *m, uint64_t time_ns,
			struct seam_module *module);

#endif /* SEAM_ORIGIN_H */
