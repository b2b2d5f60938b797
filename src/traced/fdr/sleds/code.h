/* SPDX-License-Identifier: MIT */
/*
 * code.h - an image's code in memory: segments, beginnings of functions, nops
 *
 * Addresses are of this process.  The functions that read, read readable
 * segments only, so they are safe with any numbers.  Any thread, as long as the
 * image stays loaded.
 */
#ifndef SEAM_FDR_CODE_H
#define SEAM_FDR_CODE_H

#include <sys/mman.h>

#include "base/array.h"

enum {
	SEAM_FDR_MAX_SLOTS = 4,
	SEAM_FDR_ENDBR_BYTES = 4,
};

/* As the program headers say. */
struct seam_fdr_segment {
	uint64_t start, end;
	int rights;			/* PROT_READ and so on */
};

/* Zeroed is valid and empty. */
struct seam_fdr_code {
	SEAM_ARRAY(struct seam_fdr_segment) segments;
	uint64_t eh_frame_header;	/* 0: none */
	/* pointers that the loader sets to __fentry__, and its address */
	uint64_t fentry_slots[SEAM_FDR_MAX_SLOTS];
	size_t n_fentry_slots;
	uint64_t fentry;		/* 0: none */
};

void seam_fdr_code_fini(struct seam_fdr_code *code);

/* The segment with all of [@start, @start + @bytes) and @rights; or NULL. */
const struct seam_fdr_segment *
seam_fdr_code_segment(const struct seam_fdr_code *code, uint64_t start,
		      uint64_t bytes, int rights);

/* The @bytes of code at @start; NULL where they are not all code. */
const uint8_t *seam_fdr_code_at(const struct seam_fdr_code *code,
				uint64_t start, uint64_t bytes);

/* Copy @bytes of any readable segment.  False: they are not all there. */
bool seam_fdr_code_read(const struct seam_fdr_code *code, uint64_t start,
			void *to, size_t bytes);

/*
 * The size of the instruction at @p, of at most @n bytes, if it is a nop; 0:
 * another one.  Source: Intel SDM, volume 2, "NOP", with prefixes.
 */
size_t seam_fdr_nop_bytes(const uint8_t *p, size_t n);

/* Whether @p begins with endbr64. */
bool seam_fdr_is_endbr(const uint8_t *p);

/*
 * The table of .eh_frame_hdr: the functions' beginnings, ascending.  Number of
 * entries; the beginning in entry @i; the first entry that is not before
 * @address.  Source: LSB 5.0, "The .eh_frame_hdr section".
 */
size_t seam_fdr_code_n_functions(const struct seam_fdr_code *code);
uint64_t seam_fdr_code_function(const struct seam_fdr_code *code, size_t i);
size_t seam_fdr_code_find(const struct seam_fdr_code *code, uint64_t address);

/*
 * The size of the instruction at @start if it calls __fentry__; else 0.
 */
size_t seam_fdr_code_fentry_bytes(const struct seam_fdr_code *code,
				  uint64_t start);

/*
 * ---- change code that threads may be executing ----
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
 * old or the new bytes; or, through /proc/self/mem, perhaps a byte of each.
 */
void seam_fdr_write_head(struct seam_fdr_write *w, uint64_t address,
			 const uint8_t head[2]);

/*
 * From here on all threads execute what was written before.  By membarrier(2),
 * since Linux 4.16; whether the kernel has that.
 */
void seam_fdr_write_sync(void);
bool seam_fdr_write_can_sync(void);

#endif /* SEAM_FDR_CODE_H */
