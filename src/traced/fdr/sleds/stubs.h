/* SPDX-License-Identifier: MIT */
/*
 * stubs.h - small pieces of code near an image, for targets out of its reach
 *
 * A call in a sled reaches 2 GiB; this library may be further away.  A stub is
 * 32 bytes, in memory near the image, and is never freed or changed: a thread
 * may be about to execute the stub whatever is unpatched or unloaded meanwhile.
 *
 * Threads: one at a time makes stubs.
 */
#ifndef SEAM_FDR_STUBS_H
#define SEAM_FDR_STUBS_H

#include "base/base.h"

/* The image's code. */
struct seam_fdr_reach {
	uint64_t low, high;
};

/*
 * An address that goes to @target, and that all of @reach can call: @target
 * itself, or a stub, the same stub for each call.  With @loads_word it is a
 * stub that first sets r10d to the 4 bytes in front of the call instruction,
 * which has 5 bytes.  0: no memory is near.
 */
uint64_t seam_fdr_stub_jump(const struct seam_fdr_reach *reach,
			    const void *target, bool loads_word);

/*
 * A stub for one function: sets r11d to @word and jumps to @target, which
 * returns to its caller.  With @back not 0 a sled jumps to the stub, which
 * calls @target and jumps to @back.  0 as above.
 */
uint64_t seam_fdr_stub_entry(const struct seam_fdr_reach *reach, uint32_t word,
			     const void *target, uint64_t back);

/*
 * Write the stubs that were made since the last time; before that they must not
 * be executed.  0; or -errno, and the stubs are not there.
 */
int seam_fdr_stubs_write(void);

/* Whether seam_fdr_stub_jump() has returned @address. */
bool seam_fdr_stub_is_jump(uint64_t address);

#endif /* SEAM_FDR_STUBS_H */
