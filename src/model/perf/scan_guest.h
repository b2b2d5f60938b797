/* SPDX-License-Identifier: MIT */
/*
 * scan_guest.h - samples with guest records, while a file is scanned
 *
 * Two events hold what an agent in a traced program wrote
 * (doc/formats/guest.md): samples of seam:guest become samples whose
 * callchain has the guest's frames, those of seam:guest_symtab are collected
 * and are no samples.
 */
#ifndef SEAM_SCAN_GUEST_H
#define SEAM_SCAN_GUEST_H

#include "base/arena.h"
#include "model/guest/guest_merge.h"
#include "wire/guest/guest_counts.h"
#include "wire/perf/perf_data.h"
#include "wire/perf/perf_sample.h"

/* What @event is, by its attr and its name. */
enum seam_guest_event
seam_scan_guest_event(const struct seam_perf_event *event);

/*
 * The event that counts the same as seam:guest, the CPU time of a thread: that
 * of a clock.  SEAM_NONE when @data has none.
 */
uint32_t seam_scan_guest_clock(const struct seam_perf_data *data);

/* A symbol record, still to be decoded. */
struct seam_guest_record {
	int32_t pid;
	struct seam_bytes raw;	/* in the file, or in the scan's arena */
};

/* What one scan took of both events.  Zeroed is valid and empty. */
struct seam_scan_guest {
	SEAM_ARRAY(struct seam_guest_record) symbols;
	struct seam_guest_counts counts;
	struct seam_guest_words words;		/* scratch: a merged chain */
};

void seam_scan_guest_fini(struct seam_scan_guest *guest);

/*
 * Merge the guest record of @sample into @core's chain, words of this machine's
 * order; the result is valid until the next call.  A record that breaks the
 * format, or does not fit the chain, is counted, and the chain stays as it is.
 * *@vmstate is set in each case.  0 or -ENOMEM.
 */
int seam_scan_guest_merge(struct seam_scan_guest *guest,
			  const struct seam_perf_sample *sample,
			  struct seam_perf_core *core, uint8_t *vmstate);

/*
 * Collect the symbol record of @sample; @arena: for a copy, NULL where the
 * bytes stay.  0 or -ENOMEM.
 */
int seam_scan_guest_symbol(struct seam_scan_guest *guest,
			   const struct seam_perf_sample *sample,
			   struct seam_arena *arena);

#endif /* SEAM_SCAN_GUEST_H */
