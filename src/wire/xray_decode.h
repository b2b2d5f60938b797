/* SPDX-License-Identifier: MIT */
/*
 * xray_decode.h - a block to batches of events, fast
 *
 * Function records come by the hundred million, so they are read by a loop
 * of a few instructions over a range whose bounds were checked once.  All
 * other records go through seam_xray_next(), which is also the oracle that
 * tests hold this loop against.
 */
#ifndef SEAM_XRAY_DECODE_H
#define SEAM_XRAY_DECODE_H

#include "wire/xray_fdr.h"

/*
 * The next events of the block that @reader is in, into @batch.  Returns 0
 * with batch->n > 0; 0 with batch->n == 0 at the end of the block; or a
 * negative errno as seam_xray_next(), when batch->n events before the
 * problem stand.  Cost: about 1 ns a function record.
 */
int seam_xray_decode(struct seam_xray_reader *reader,
		     struct seam_xray_batch *batch);

#endif /* SEAM_XRAY_DECODE_H */
