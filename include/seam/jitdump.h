/* SPDX-License-Identifier: MIT */
/*
 * seam/jitdump.h - names for profilers of code that is made at run time
 *
 * A just-in-time compiler calls it when code was made, moved or freed.
 * The library writes a JITDUMP file (or a perf map), or sends the same records
 * to "seam record".  With these a profiler names that code, shows its source
 * lines and its instructions, and finds the code of an address at a time:
 *
 *	struct seam_jitdump *dump;
 *	struct seam_jitdump_code code = {
 *		.name = "add", .bytes = p, .size = n,
 *	};
 *
 *	if (seam_jitdump_open(&dump, NULL))
 *		dump = NULL;			go on without
 *	...
 *	seam_jitdump_load(dump, &code, 1);	before the code can run
 *	seam_jitdump_move(dump, code.id, new_addr);
 *	seam_jitdump_unload(dump, code.id);	when its memory is free again
 *
 * seam-jitdump(3) has the promises to the program, what a forked child
 * inherits, and how records reach a recorder.  Every function accepts a dump of
 * NULL and then does nothing, so a JIT needs no "if profiling" of its own.
 *
 * Threads: any thread, and any signal handler, may call at any time.  Calls for
 * one dump exclude each other for the time of a write(2); signals and
 * cancellation of the thread wait for the end of a call, but for SIGSEGV,
 * SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGSYS.  errno is as it was.
 *
 * Source: JITDUMP specification version 2 and jit-interface.txt (Linux,
 * tools/perf/Documentation).
 */
#ifndef SEAM_JITDUMP_H
#define SEAM_JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEAM_JITDUMP_PUBLIC __attribute__((visibility("default")))

struct seam_jitdump;		/* an open dump */

enum seam_jitdump_format {
	/* JITDUMP: names, code, lines, unwinding, times. */
	SEAM_JITDUMP_FORMAT_DUMP,
	/*
	 * perf-PID.map: addresses, sizes and names as text, for tools that
	 * read nothing else.  Without times, an address that is used again
	 * is ambiguous.
	 */
	SEAM_JITDUMP_FORMAT_MAP,
};

/* Zeroed is the default. */
struct seam_jitdump_options {
	/*
	 * The folder of the file.  NULL: no file if a recorder takes the
	 * records; else the first usable folder of $JITDUMPDIR, /tmp,
	 * $XDG_RUNTIME_DIR, $HOME and the current one; a perf map is always in
	 * /tmp, where tools look for it.  A folder on a file system mounted
	 * noexec cannot be used for a dump.
	 */
	const char *folder;
	enum seam_jitdump_format format;
	/*
	 * 0: the records of a call are in the file when the call returns.
	 * Else records are buffered until 64 KiB are full, or until
	 * seam_jitdump_flush() or seam_jitdump_close(): a program that is
	 * killed, or ends without close, loses buffered records.  No other
	 * call writes them, so flush when compilation pauses.  A stream is
	 * never buffered.
	 */
	int is_buffered;
};

/* Code from an offset on, until the next line's offset, is from a line. */
struct seam_jitdump_line {
	uint64_t offset;		/* bytes from the start of the code */
	uint32_t line;			/* from 1; 0: no source */
	uint32_t column;		/* 0: not known */
	const char *file;		/* NULL: as the line before */
};

/*
 * Unwinding tables of one piece of code, with relative addresses: the .eh_frame
 * as if it began after the code, aligned to 8, and the .eh_frame_hdr after
 * it.  A header of 20 bytes and no frame table means: use the frame pointer.
 */
struct seam_jitdump_unwinding {
	const void *eh_frame;
	uint64_t eh_frame_size;		/* bytes */
	const void *eh_frame_hdr;
	uint64_t eh_frame_hdr_size;	/* bytes */
	/*
	 * Bytes of these tables that are in memory there; or 0.  perf counts
	 * that memory as part of the function: other code must not be in it.
	 */
	uint64_t mapped_size;
};

struct seam_jitdump_code {
	const char *name;		/* UTF-8, any length; NULL is "" */
	const void *bytes;		/* the code, to be copied */
	uint64_t size;			/* bytes; 0 is allowed */
	uint64_t addr;			/* where it will run; 0: at bytes */
	const struct seam_jitdump_line *lines;	/* by offset */
	size_t n_lines;
	const struct seam_jitdump_unwinding *unwinding;	/* NULL: none */
	uint64_t id;			/* out: for move and unload; not 0 */
};

/*
 * Make the file and map its marker.  A file of that name of an earlier process
 * is removed, unless the file is in use.
 *
 * Returns 0 and *@dump, for seam_jitdump_close(); or, with *@dump NULL, -EEXIST
 * when this process has that file open already (share the one dump), or
 * -errno of the last folder tried.  @options NULL is the default.
 */
SEAM_JITDUMP_PUBLIC
int seam_jitdump_open(struct seam_jitdump **dump,
		      const struct seam_jitdump_options *options);

/*
 * Code was made: @n pieces at @codes, whose ids are set.  Nothing of @codes is
 * used after the call.  Call before the code can run: earlier samples of the
 * code have no name.
 *
 * Returns 0; or -errno when records were lost, those of this call and, if
 * buffered, earlier ones, or what a child should have inherited: -ENOSPC,
 * -EFBIG (limit on file sizes), -EBADF (somebody closed the descriptor), -EPIPE
 * (the recording has ended), -EBUSY, -ENOMEM.  Ids are valid all the same, 0
 * excepted.
 *
 * Cost: 0.3 us a call, however many pieces, to block and restore signals; one
 * writev(2), or none if buffered; and 0.2 us for a piece of 64 bytes.
 * Streamed, 0.2 us for a piece and no further system call.
 */
SEAM_JITDUMP_PUBLIC
int seam_jitdump_load(struct seam_jitdump *dump,
		      struct seam_jitdump_code *codes, size_t n);

/*
 * Code @id is at @new_addr from now on, unchanged.  Returns as above; -ENOENT
 * when there is no such code (any more), -ENODATA when the load of the code was
 * lost.
 */
SEAM_JITDUMP_PUBLIC
int seam_jitdump_move(struct seam_jitdump *dump, uint64_t id,
		      uint64_t new_addr);

/*
 * Code @id is gone.  The formats have no record for the end of code; but a
 * child that is forked later does not inherit this code.  Returns 0, -ENOENT
 * or -EBUSY.
 */
SEAM_JITDUMP_PUBLIC
int seam_jitdump_unload(struct seam_jitdump *dump, uint64_t id);

/*
 * Write buffered records.  In a forked child: make the child's dump now, not
 * with its first load.  Returns as seam_jitdump_load(); -ENOBUFS where the
 * recorder's ring is full and records are still queued.
 */
SEAM_JITDUMP_PUBLIC
int seam_jitdump_flush(struct seam_jitdump *dump);

/*
 * Pieces of code and moves that were lost, so far; records that are buffered or
 * queued are not lost.
 */
SEAM_JITDUMP_PUBLIC
uint64_t seam_jitdump_lost(const struct seam_jitdump *dump);

/*
 * The file's path, valid until the dump is closed or its process forks; ""
 * where a recorder takes the records.
 */
SEAM_JITDUMP_PUBLIC
const char *seam_jitdump_path(const struct seam_jitdump *dump);

/*
 * End the dump with a CLOSE record and free it.  The file and the page that
 * marks it stay: code that was loaded may still run.  No other thread may be
 * in a call.
 */
SEAM_JITDUMP_PUBLIC
void seam_jitdump_close(struct seam_jitdump *dump);

#ifdef __cplusplus
}
#endif

#endif /* SEAM_JITDUMP_H */
