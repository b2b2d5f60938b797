/* SPDX-License-Identifier: MIT */
/*
 * jit_code.h - the code that just-in-time compilers made, at an address and
 * a time
 *
 * Code is loaded, moved, freed and its address used again; processes fork and
 * exec.  A sample is resolved to the code that was there at its time:
 *
 *	jit = seam_jit_code_new();
 *	seam_jit_code_add_dump(jit, bytes, &options, err);
 *	seam_jit_code_fork(jit, parent, child, time_ns);
 *	...
 *	seam_jit_code_find(jit, pid, addr, time_ns, &location);
 *
 * The rules, which are those of code_map.h for every process:
 *  - records count in the order of their times, then of the file;
 *  - JITDUMP has the time of a load but not of a free: code is there until
 *    other code covers its first byte, or until it is moved away;
 *  - a child has its parent's code as of the fork, and then its own;
 *  - an exec ends all code of a process;
 *  - perf maps are used where no dump has the address.  Their lines have times
 *    where a recorder followed the map (wire/jit/perf_map.h): a line is
 *    in force from its time until another covers its first byte; before that
 *    only where no line came earlier since the fork or exec, because many
 *    runtimes write late.  Without times a line is valid at any time, and of
 *    two for one address the later one; the result is marked as ambiguous;
 *  - CLOSE ends nothing: code that was compiled still runs.
 *
 * Debug information belongs to the load with its address (LLVM's jitlink
 * writes all of it before all loads), else to the next load.  Unwinding
 * information has no address and belongs to the next load.
 *
 * Ownership: the bytes of dumps are borrowed and must stay valid until
 * seam_jit_code_free(): names, code and tables are never copied.  Maps are
 * copied.  Everything handed out is valid until then.
 * Threads: one at a time.
 * Cost: about 0.2 us a function to add and index, 0.05 us to find one; the
 * lines of a function are decoded when they are first used.
 */
#pragma once

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"

struct seam_jit_code;

/* One row of a line table; holds until the next row's address. */
struct seam_jit_line {
	uint64_t addr;		/* where the code was when it was loaded */
	uint32_t line;		/* 0: this code has no line */
	uint32_t column;	/* or what else the runtime writes; 0: none */
	const char *file;	/* "" when not known */
};

/* A piece of code: one LOAD record, or one line of a perf map. */
struct seam_jit_object {
	const char *name;	/* as the runtime wrote it; may be "" */
	uint64_t start_addr;	/* when it was loaded */
	uint64_t size;		/* bytes */
	struct seam_bytes code;	/* size 0 where the bytes are not known */
	uint64_t loaded_ns;	/* 0 when not known */
	/*
	 * Of a map: until then, the line before in the file may be the right
	 * one where @is_reused.  UINT64_MAX without times; 0: of a dump.
	 */
	uint64_t known_ns;
	uint64_t code_index;
	/*
	 * Its UNWINDING_INFO.  Addresses in it are relative, and right where it
	 * begins eh_frame_offset bytes after the code's start.
	 */
	struct seam_bytes eh_frame;	/* size 0: none */
	uint64_t eh_frame_offset;
	int32_t tid;		/* that compiled, in its own pid namespace */
	uint32_t elf_machine;	/* 0 when not in the dump */
	uint8_t endian;		/* enum seam_endian of code and tables */
	bool is_reused;		/* written at once with another of its place */

	/* for this module */
	uint32_t dump, debug, lines;
};

/* The code at an address at a time. */
struct seam_jit_location {
	uint32_t object;	/* for seam_jit_code_object() */
	const char *name;
	uint64_t start_addr;	/* where the code was at the time */
	uint64_t offset;	/* of the address in the code */
	bool is_ambiguous;	/* other code may have been there then */
	const char *file;	/* "" when not known */
	uint32_t line;		/* 0 when not known */
	uint32_t column;
};

struct seam_jit_code_options {
	int32_t pid;		/* of the dump, as the recording numbers it */
	uint64_t first_ns;	/* of the recording; 0 and 0: not known */
	uint64_t last_ns;
	/*
	 * The recording's clock is not the dump's: code counts as there from
	 * the start, and the order of the records alone is used.
	 */
	bool is_untimed;
	/*
	 * From an architecture's clock (header flag bit 0) to ns; NULL: there
	 * is no conversion, and such a dump is read as untimed.  False for a
	 * count that cannot be converted.
	 */
	bool (*to_ns)(void *context, uint64_t count, uint64_t *ns);
	void *context;
};

/* NULL when memory ran out. */
struct seam_jit_code *seam_jit_code_new(void);
void seam_jit_code_free(struct seam_jit_code *jit);

/*
 * Add the dump @bytes.  Loads that carry another pid than the header's count
 * for that process, if the two numberings of processes are one.
 *
 * Returns 0; -EBADMSG, -ENODATA or -ENOTSUP when it is no dump that can be
 * read (wire/jit/jitdump.h), and nothing is added; -ENOMEM.
 */
int seam_jit_code_add_dump(struct seam_jit_code *jit, struct seam_bytes bytes,
			   const struct seam_jit_code_options *options,
			   struct seam_err *err);

/*
 * Add the perf map @bytes of process @pid.  @times is the index of when its
 * lines were written (wire/jit/perf_map.h); size 0: there is none, or the
 * recording has another clock.  0 or -ENOMEM.
 */
int seam_jit_code_add_map(struct seam_jit_code *jit, int32_t pid,
			  struct seam_bytes bytes, struct seam_bytes times,
			  struct seam_err *err);

/*
 * @child was forked from @parent, or (-1) became another program, as @pid.
 * 0 or -ENOMEM.
 */
int seam_jit_code_fork(struct seam_jit_code *jit, int32_t parent, int32_t child,
		       uint64_t time_ns);
static inline int seam_jit_code_exec(struct seam_jit_code *jit, int32_t pid,
				     uint64_t time_ns)
{
	return seam_jit_code_fork(jit, -1, pid, time_ns);
}

/*
 * Bring everything added in order; the first find does it otherwise.  Adding
 * more later is allowed, and costs this again.  0 or -ENOMEM.
 */
int seam_jit_code_index(struct seam_jit_code *jit);

/* The code of @pid at @addr at @time_ns; false when none is known. */
bool seam_jit_code_find(struct seam_jit_code *jit, int32_t pid, uint64_t addr,
			uint64_t time_ns, struct seam_jit_location *location);

/*
 * The same without file and line.  The code is indexed, and nothing is added
 * meanwhile: then any number of threads may look up, the span below too.
 */
bool seam_jit_code_find_object(const struct seam_jit_code *jit, int32_t pid,
			       uint64_t addr, uint64_t time_ns,
			       struct seam_jit_location *location);

/*
 * The span [*@from_ns, *@to_ns) around @time_ns in which the code of @pid does
 * not change: every find for an address has the same result.
 */
void seam_jit_code_stable_span(struct seam_jit_code *jit, int32_t pid,
			       uint64_t time_ns, uint64_t *from_ns,
			       uint64_t *to_ns);

size_t seam_jit_code_count(const struct seam_jit_code *jit);

/* @object is less than the count; valid until something is added. */
const struct seam_jit_object *
seam_jit_code_object(const struct seam_jit_code *jit, uint32_t object);

/*
 * The line table of a piece of code, sorted by address, rows outside of it
 * left out.  *@lines is valid until seam_jit_code_free().  Returns its length.
 */
size_t seam_jit_code_lines(struct seam_jit_code *jit, uint32_t object,
			   const struct seam_jit_line **lines);

/*
 * From a time on, a piece of code or a part of it is somewhere; or nothing is
 * there any more (object is SEAM_NONE): it was moved away, or other code covers
 * its first byte.
 */
struct seam_jit_placement {
	int32_t pid;
	uint32_t object;	/* for seam_jit_code_object(), or SEAM_NONE */
	uint64_t time_ns;	/* 0: not known */
	uint64_t start_addr;
	uint64_t size;		/* bytes */
	uint64_t offset;	/* of start_addr in the code */
};

/* Zeroed is valid and empty; free(items) ends it. */
struct seam_jit_placements {
	SEAM_ARRAY(struct seam_jit_placement) list;
};

/*
 * Append all placements of @jit: process by process, and in each the maps
 * first, because dumps take precedence, then by time.  Replayed in that order
 * they give the results of seam_jit_code_find().  Code inherited in a fork is
 * not listed again; code without a time begins with the process, one nanosecond
 * after its last fork or exec.  0 or -ENOMEM.
 */
int seam_jit_placements_read(struct seam_jit_placements *placements,
			     struct seam_jit_code *jit);

/* @pid: the dump's process.  @is_corrected: nothing was lost. */
typedef void seam_jit_report(void *context, int32_t pid, const char *text,
			     uint64_t count, bool is_corrected);

/*
 * Call @report for everything that was corrected, skipped or guessed: "moves of
 * unknown code", 3.  After indexing.
 */
void seam_jit_code_notes(const struct seam_jit_code *jit,
			 seam_jit_report *report, void *context);
