/* SPDX-License-Identifier: MIT */
/*
 * code_write.h - change code that threads may be executing
 *
 *	seam_fdr_write_begin(&w, code, start, end);
 *	seam_fdr_write(&w, ...);		what is not executed yet
 *	seam_fdr_write_sync();
 *	seam_fdr_write_head(&w, ...);		what makes it be executed
 *	seam_fdr_write_sync();
 *	seam_fdr_write_end(&w);
 *
 * Pages are writable and executable in between, and then as they were.  Where
 * the system refuses that (W^X: SELinux, PR_SET_MDWE), the bytes go through
 * /proc/self/mem, which pages need not be writable for.  The kernel may copy
 * these one by one (rep movsb, which is interrupted where the CPU has executed
 * the line that it writes to), so threads may see some of them before others.
 *
 * Source: Intel SDM, volume 3, 9.1.3 "Handling Self- and Cross-Modifying
 * Code"; membarrier(2).
 */
#ifndef SEAM_FDR_CODE_WRITE_H
#define SEAM_FDR_CODE_WRITE_H

#include "traced/fdr/sleds/code.h"

struct seam_fdr_write {
	const struct seam_fdr_code *code;
	uint64_t start, end;
	int memory;		/* descriptor of /proc/self/mem; -1: not used */
	int error;		/* of the first write that failed */
};

/*
 * Prepare to write between @start and @end, in executable segments of @code.
 * 0, or -errno where neither way is allowed.
 */
int seam_fdr_write_begin(struct seam_fdr_write *w,
			 const struct seam_fdr_code *code, uint64_t start,
			 uint64_t end);

/* 0, or the negative errno of the first write that failed. */
int seam_fdr_write_end(struct seam_fdr_write *w);

/* Write @bytes at @address, that no thread can be executing. */
void seam_fdr_write(struct seam_fdr_write *w, uint64_t address,
		    const void *from, size_t bytes);

/*
 * Write two bytes, which are in one aligned word of 8.  A thread executes the
 * old or the new ones; or, through /proc/self/mem, perhaps one of each.
 */
void seam_fdr_write_head(struct seam_fdr_write *w, uint64_t address,
			 const uint8_t head[2]);

/*
 * From here on all threads execute what was written before.  Whether that can
 * be had, where there are others: by membarrier(2), since Linux 4.16.
 */
void seam_fdr_write_sync(void);
bool seam_fdr_write_can_sync(void);

#endif /* SEAM_FDR_CODE_WRITE_H */
