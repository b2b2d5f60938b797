/* SPDX-License-Identifier: MIT */
/*
 * live_dumps.h - jitdump files, read while their JITs write them
 *
 * A JIT that is not connected to the recorder writes a JITDUMP file, and maps
 * a page of it to say so.  The recorder sees the mapping, opens the file, and
 * from time to time reads what was appended, for the unwinding rules of its
 * code (live_jit.h).  The reader of the recording reads the whole file later.
 *
 * Code is known some SEAM_LIVE_DUMPS_WAIT_NS after its record was written, and
 * many JITs write through a buffer: exact is what was written before the code
 * ran and before a sample was taken in it.  Until then it is left by its frame
 * pointer, as all code without rules.
 *
 * The files are opened and checked as those that are kept (symbol/jit/jit_find,
 * record/proc/target_file), and read in a helper thread, one job at a time, so
 * that a program that writes without end costs a bounded part of the time.
 *
 * Threads: one, the recorder's.
 */
#ifndef SEAM_LIVE_DUMPS_H
#define SEAM_LIVE_DUMPS_H

#include "record/proc/helper.h"
#include "record/stacks/live_jit.h"

enum {
	SEAM_LIVE_DUMPS_MAX = 64,	/* more replace those read long ago */
	SEAM_LIVE_DUMPS_READ = 256 << 10,	/* bytes of a job */
	SEAM_LIVE_DUMPS_TRIES = 20,	/* to open one: it may still be empty */
};

#define SEAM_LIVE_DUMPS_WAIT_NS UINT64_C(20000000)	/* between two jobs */

struct seam_live_dump {
	int32_t pid;
	uid_t user;			/* of the process */
	int fd;				/* -1: not open, or with the job */
	char *path;			/* as the process sees it; owned */
	uint64_t serial;
	uint64_t pos;			/* of the first byte not used */
	uint64_t due_ns;		/* not read again before */
	uint64_t wait_ns;
	uint8_t n_tries;
	bool has_ended;			/* its process: nothing will follow */
	bool is_over;			/* of no use: not to be read */
};

/* Zeroed is valid and empty. */
struct seam_live_dumps {
	struct seam_helper *helper;	/* started with the first file */
	SEAM_ARRAY(struct seam_live_dump) items;
	struct seam_live_jit *jit;	/* borrowed; the caller's */
	uint64_t n_serials;
	bool is_busy;			/* a job runs */
};

/* Process @pid mapped @path executable: read it if it is a jitdump. */
void seam_live_dumps_add(struct seam_live_dumps *dumps, int32_t pid,
			 const char *path);

/* Process @pid runs another program, or is a new one with an old number. */
void seam_live_dumps_forget(struct seam_live_dumps *dumps, int32_t pid);

/* Process @pid has ended: its files are read to their ends. */
void seam_live_dumps_exit(struct seam_live_dumps *dumps, int32_t pid);

/* Once a round: take what was read, and begin the next.  Never blocks. */
void seam_live_dumps_step(struct seam_live_dumps *dumps, uint64_t now_ns);

void seam_live_dumps_fini(struct seam_live_dumps *dumps);

#endif /* SEAM_LIVE_DUMPS_H */
