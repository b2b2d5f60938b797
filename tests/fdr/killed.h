/* SPDX-License-Identifier: MIT */
/*
 * killed.h - the log that a program shares with who kills it
 *
 * A thread makes calls 1, 2, 3, ..., and what each of them is follows from its
 * number, so how far it came is the whole log.  killed.py repeats shape_of().
 */
#ifndef SEAM_TESTS_FDR_KILLED_H
#define SEAM_TESTS_FDR_KILLED_H

#include <stdatomic.h>
#include <stdint.h>

enum { KILLED_THREADS = 2 };

struct killed_program {
	_Atomic uint32_t pid;
	_Atomic uint32_t is_done;
	struct {
		_Atomic uint32_t tid;
		_Atomic uint32_t must_end;	/* set by who watches */
		/* before and after the call of this number */
		_Atomic uint64_t begun, done;
	} threads[KILLED_THREADS];
};

#endif /* SEAM_TESTS_FDR_KILLED_H */
