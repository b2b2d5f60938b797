/* SPDX-License-Identifier: MIT */
/*
 * seam/fdr.h - a flight data recorder for function calls
 *
 * For programs built with "clang -fxray-instrument", with gcc's or clang's
 * -finstrument-functions, or, entries only, with -fpatchable-function-entry or
 * -mfentry.  Each entry and exit of their functions is recorded with its time,
 * at the cost of reading the time stamp counter.  "seam record --trace" records
 * without a change of the program; with this header the program decides:
 *
 *	seam_fdr_start("functions=handle_*;min=5us");
 *	...
 *	seam_fdr_stop();
 *
 *	seam calls PROGRAM-PID.seam
 *
 * Link with -lseam-fdr, or as "pkg-config --cflags --libs seam-fdr" says.
 *
 * Where the records go.  A full trace has a recorder, in whose memory records
 * survive SIGKILL: "seam record --trace" (the environment has SEAM_LINK), or a
 * recorder that the library starts: "seam", beside the library or in PATH.  The
 * recorder writes a bundle, a folder that "seam calls", "seam report" and
 * llvm-xray open:
 *
 *	NAME.seam/xray/PID.xray		FDR log, version 5
 *	NAME.seam/xray/PID.yaml		names of the functions
 *	NAME.seam/xray/PID.events	names of the types of events
 *	NAME.seam/meta.json
 *
 * Records that the recorder is too slow for are lost and counted: no thread
 * waits.  A flight recorder ("flight=1") keeps each thread's newest calls in
 * memory of the program of a fixed size.  "seam" is started when these calls
 * are written: by seam_fdr_snapshot(), seam_fdr_stop() and exit().
 *
 * wait() does not find the recorder that the library starts; the recorder has
 * no descriptor of the program, and ends when the bundle is complete.
 *
 * At the end.  exit() and return from main() complete the bundle, unless a
 * child still records.  After _exit(), a crash and SIGKILL the recorder
 * completes it; a flight recorder loses everything.
 *
 * fork().  A child records too, under its own pid, into a log of its own in its
 * parent's bundle, without its parent's records.  A child of a flight recorder
 * has a bundle of its own, NAME-PID.seam, which is lost where the child runs
 * another program or ends by _exit().
 *
 * Arguments are not NULL, except where a comment says so: there is no check.
 *
 * Promises to the program:
 *  - Recording changes no register, flag or errno that a function or the
 *    program can see, and allocates nothing by malloc.  Calls of this header
 *    may use malloc where their comment says so.
 *  - A function may be called in a signal handler if its comment says so; the
 *    other functions neither in a handler nor in a constructor of a library
 *    that is loaded by dlopen().
 *  - No signal is sent, and no handler of signals is installed.
 *  - A program with AT_SECURE (set-user-ID) never records.
 *
 * Functions have ids, from 1 on.  An id is never used for another function.
 * Exception: with -finstrument-functions, for a function of a library that is
 * loaded where another library was unloaded; the name is that of either
 * function.
 * Functions of the executable's XRay instrumentation come first, in the order
 * of its xray_instr_map, so llvm-xray -instr_map=PROGRAM has these ids.
 *
 * Costs are CPU time on a machine at 2.6 GHz that reads its time stamp counter
 * in 9 ns; an entry and an exit that are recorded take 18 ns (bench/fdr).
 *
 * Machines: x86-64 Linux 4.14 and later.  There is no library for others.
 *
 * Source: XRay Flight Data Recorder Trace Format, version 1, and LLVM 14's
 * version 5 of it; doc/formats/xray.md.
 */
#ifndef SEAM_FDR_H
#define SEAM_FDR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SEAM_FDR_PUBLIC __attribute__((visibility("default")))

enum {
	SEAM_FDR_MAX_EVENT_BYTES = 4096,	/* of an event's data */
	SEAM_FDR_MAX_LOGGED_ARGUMENTS = 6
};

/*
 * Begin to record, and patch the functions that are selected.
 *
 * @options are pairs KEY=VALUE, with ';' between two pairs; NULL: the value of
 * the environment variable SEAM_TRACE, or no options:
 *
 *	functions=GLOB,...	only these functions; as fnmatch(3), of the
 *				symbol's name, or of the name in the source
 *	except=GLOB,...		all but these
 *	min=TIME		forget calls that are shorter: 500ns, 5us, 1ms
 *	depth=N			forget calls below N others
 *	args=N			with the first N integer arguments, at most 6
 *	flight=1		a flight recorder
 *	trigger=T,...		FUNCTION>TIME or calls:FUNCTION: a flight
 *				recorder, which keeps what led up to the first
 *				such call: each thread records half of its
 *				memory after the call, then nothing
 *	out=DIR			the bundle; default NAME-PID.seam in the current
 *				folder.  A bundle that is there becomes DIR.old.
 *				Not used under "seam record --trace"
 *
 * Without GLOBs no symbols are needed: stripped programs can be recorded.  With
 * GLOBs, the symbols of a stripped program are in its separate debug file,
 * which needs the program's build id.
 *
 * A later start, after seam_fdr_stop(), may have other options, except flight=,
 * which triggers also set.  After a later start with triggers all
 * functions cost as with min=.
 *
 * seam_fdr_start_why() also writes the cause of a failure as a line to @why, a
 * buffer of @why_bytes: for -EINVAL the part of @options that is wrong.
 *
 * Returns 0; -EINVAL: @options is not of that form, or flight= is not as at the
 * first start; -EALREADY: recording has begun; -EPERM: the program has other
 * rights than its user (AT_SECURE), a seccomp filter was set, or valgrind runs
 * it; -EEXIST: out= is not a bundle (of a flight recorder seam_fdr_stop() says
 * so); -ENOENT: there is no "seam", or no folder for out=; -EBUSY: another
 * thread is in seam_fdr_stop(); -ETIMEDOUT: the recorder does not answer;
 * -ENOMEM; or -errno of the file that could not be made.
 *
 * Threads: any, not in a handler.  Uses malloc.  Cost: 1 ms, 30 ms to start
 * a recorder, and with GLOBs the reading of all symbols.
 */
SEAM_FDR_PUBLIC
int seam_fdr_start(const char *options);
SEAM_FDR_PUBLIC
int seam_fdr_start_why(const char *options, char *why, size_t why_bytes);

/*
 * Unpatch all functions and complete the bundle.  Calls that other threads are
 * in have no exit.  Also ends the recording of children that have the same
 * recorder; a child's stop ends its own alone.  May be followed by another
 * start.
 *
 * Returns 0, also where nothing is recorded; -EBADF: the program has closed the
 * library's descriptor, so the bundle is complete after the program's end;
 * -EPIPE: the recorder has ended; -ETIMEDOUT: the recorder goes on after 60 s;
 * or the first -errno of a write: the log is valid up to there.
 *
 * Threads: any, not in a handler.  Cost: 50 ms at least, and a copy of the
 * log, if more than one thread recorded.
 */
SEAM_FDR_PUBLIC
int seam_fdr_stop(void);

/*
 * A flight recorder: write the newest calls to the new bundle @folder, and go
 * on.  A bundle that is there becomes FOLDER.old.
 *
 * Returns 0; -EINVAL: @folder is NULL, or the recording's own; -EEXIST: @folder
 * is not a bundle; -ENOENT: not recording; -ENOTSUP: there is a recorder (under
 * "seam record" use "seam snapshot PID"); -EBUSY: another thread writes; or
 * -errno.
 *
 * Threads: any, not in a handler; other threads record meanwhile.  Cost:
 * 100 ms, and a copy of the calls.
 */
SEAM_FDR_PUBLIC
int seam_fdr_snapshot(const char *folder);

/* The bundle's absolute path; "": not recording, or under "seam record". */
SEAM_FDR_PUBLIC
const char *seam_fdr_path(void);

/*
 * Records that a flight recorder has lost, since the library was loaded, for
 * want of memory.  With a recorder 0: its bundle has the count.  Any thread, in
 * handlers too.
 */
SEAM_FDR_PUBLIC
uint64_t seam_fdr_lost(void);

/* -- which functions ------------------------------------------------------- */

/*
 * Patch, or unpatch, the functions whose names match @glob, in all images that
 * are loaded, while threads run in them.  Of a call that has begun before, only
 * the exit is recorded, or only the entry.  Not for -finstrument-functions.
 *
 * Returns the number of functions with such a name; -ENOENT: no such function
 * has a sled; -EAGAIN: not recording; -ENOMEM.
 *
 * Threads: any, not in a handler.  Uses malloc, reads all symbols.
 */
SEAM_FDR_PUBLIC
int64_t seam_fdr_patch_functions(const char *glob);
SEAM_FDR_PUBLIC
int64_t seam_fdr_unpatch_functions(const char *glob);

/* Patch, or unpatch, function @id.  0; or an error as above.  Cost: 6 us. */
SEAM_FDR_PUBLIC
int seam_fdr_patch_id(uint32_t id);
SEAM_FDR_PUBLIC
int seam_fdr_unpatch_id(uint32_t id);

/*
 * The ids of functions of loaded images whose names match @glob, ascending, at
 * most @n; @ids may be NULL where @n is 0.  Returns the number of functions,
 * which may be more than @n; or an error as above, -EAGAIN also after
 * seam_fdr_stop().
 */
SEAM_FDR_PUBLIC
int64_t seam_fdr_find(const char *glob, uint32_t *ids, size_t n);

/* -- events ---------------------------------------------------------------- */

/*
 * Record @bytes at @data, with the time, as clang's __xray_customevent() does.
 * At most SEAM_FDR_MAX_EVENT_BYTES are recorded.
 *
 * Any thread, in handlers too.  Does nothing while nothing is recorded.  Cost:
 * 20 ns, and a copy; the builtin 150 ns, because its address is checked.
 */
SEAM_FDR_PUBLIC
void seam_fdr_log_event(const void *data, size_t bytes);

/*
 * A pair of events of one thread marks an interval: data "begin NAME ..." and
 * "end NAME" of seam_fdr_log_event(), or "begin ..." and "end" of a type, whose
 * name is the interval's.  An end belongs to the last begin of its name that
 * has none.  What follows the name describes the interval.  Intervals
 * may overlap in any way.
 */

/*
 * Record @bytes at @data as an event of @type, as __xray_typedevent() does.
 * Views show the members of data that is JSON.
 */
SEAM_FDR_PUBLIC
void seam_fdr_log_typed(uint16_t type, const void *data, size_t bytes);

/*
 * The number of the type @name, from 1 on.  Views show the name, at most 255
 * bytes of it.
 *
 * Returns -ENOSPC after 1024 types, -EINVAL where @name is empty.  Threads:
 * any, not in a handler.
 */
SEAM_FDR_PUBLIC
int seam_fdr_register_type(const char *name);

/* -- calls that the program records itself --------------------------------- */

/*
 * A new id for something that the compiler does not know: a request, a function
 * of an interpreter, code made at run time.  At most 255 bytes of @name are
 * used.
 *
 * Returns the id; 0: all 65536 ids are used.  Threads: any, not in a handler.
 * Uses malloc.
 */
SEAM_FDR_PUBLIC
uint32_t seam_fdr_register_function(const char *name);

/*
 * Record the entry into, or the exit from, @id.  @arguments has @n, at most
 * SEAM_FDR_MAX_LOGGED_ARGUMENTS, and may be NULL where @n is 0.  These entries
 * and exits nest with those of the thread's functions.
 *
 * Any thread, in handlers too.  Do nothing while nothing is recorded.  Cost:
 * 10 ns each; an entry with arguments 15 ns.
 */
SEAM_FDR_PUBLIC
void seam_fdr_log_entry(uint32_t id, const uint64_t *arguments, unsigned n);
SEAM_FDR_PUBLIC
void seam_fdr_log_exit(uint32_t id);

#ifdef __cplusplus
}
#endif

#endif /* SEAM_FDR_H */
