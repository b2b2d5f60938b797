/* SPDX-License-Identifier: MIT */
/*
 * patch.h - make sleds call us, and leave them alone again, while threads run
 *
 * A sled that is not in use jumps over itself.  To use the sled, all but its
 * first two bytes are written, which no thread executes; then the first two, at
 * once.  To leave the sled only the first two are written, so a thread that is
 * inside goes on as if it had come a little earlier:
 *
 *	free		in use
 *	eb 09 ...	41 ba WORD e8 REL	entry, tail: call the trampoline
 *			eb 04 WORD e8 REL	as above, one byte changed
 *	c3 ...		41 ba WORD e9 REL	exit: the trampoline returns
 *	eb 0f ... e8	eb 00 ... e8 REL	event: do not jump over the call
 *	eb 03 ...	e8 REL			gcc: call the function's stub
 *	e8 FENTRY	e8 REL			gcc: the stub, after the jump
 *
 * gcc's nops, or its call of __fentry__, first become the jump; the call is put
 * back by the same steps.  Several nops are patched only while the process has
 * one thread: another thread might be between them.
 *
 * Where code is not writable (patch.c), threads may see one of two bytes
 * without the other.  So one byte of XRay's sleds is changed, and the stub that
 * they call loads the word, which costs more where many functions are called in
 * turn; gcc's sleds are changed only while the process has one thread.  The
 * first patch chooses the form for the life of the process: if writing is
 * refused later, sleds with a mov are changed as gcc's.
 *
 * The bytes of a sled say whether it is in use; nothing is written to a sled
 * with other bytes than these.
 */
#pragma once

#include "traced/fdr/sleds/sleds.h"

/* The functions of one list, and their sleds. */
struct seam_fdr_functions {
	struct seam_fdr_sleds sleds;
	uint32_t first_id;
	bool *is_wanted;		/* by function; NULL: unpatch all */
	uint64_t *stubs;		/* by function; 0: no stub so far */
};

struct seam_fdr_patched {
	size_t n_patched, n_unpatched;
	size_t n_refused;	/* bytes neither of a free sled nor of ours */
	size_t n_divided;	/* not patched, as there are other threads */
	size_t n_far;		/* no memory near enough for a stub */
};

/*
 * Patch the sleds of the wanted functions, and unpatch all other sleds.
 * @target_of returns the trampoline for a kind of sled of the function @id;
 * NULL: do not patch it.  A sled that is patched already keeps its trampoline.
 * 0; -ENOMEM; -ENOTSUP: there are other threads, and the kernel cannot have
 * them see new code; or the errno of the refusal to write to code.  Adds to
 * @patched.
 *
 * Threads: one at a time; the image stays loaded meanwhile.
 */
int seam_fdr_patch(struct seam_fdr_functions *functions,
		   const struct seam_fdr_code *code,
		   const void *(*target_of)(uint32_t id,
					    enum seam_fdr_sled_kind kind),
		   struct seam_fdr_patched *patched);
