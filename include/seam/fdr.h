/* SPDX-License-Identifier: MIT */
/*
 * seam/fdr.h - a flight data recorder for function calls
 *
 * For programs built with "clang -fxray-instrument", with gcc's or clang's
 * -finstrument-functions, or, entries only, with -fpatchable-function-entry or
 * -mfentry.
 * Their functions are recorded exactly, each entry and exit with its time, at
 * the cost of reading the time stamp counter.  "seam record --trace" does so
 * without a change of the program; with this header it decides itself:
 *
 *	seam_fdr_start("functions=handle_*;min=5us");
 *	...
 *	seam_fdr_stop();
 *
 *	seam calls PROGRAM-PID.seam
 *
 * Link with -lseam-fdr, or as "pkg-config --cflags --libs seam-fdr" says.
 *
 * Where the records go.  A full trace has a recorder, whose memory they are
 * written to, so they survive SIGKILL: "seam record --trace" (the environment
 * has SEAM_LINK), or one that the library starts: "seam", beside the library or
 * in PATH.  It writes a bundle, a folder that "seam calls", "seam report" and
 * llvm-xray open:
 *
 *	NAME.seam/xray/PID.xray		FDR log, version 5
 *	NAME.seam/xray/PID.yaml		names of the functions
 *	NAME.seam/xray/PID.events	names of the types of events
 *	NAME.seam/meta.json
 *
 * What the recorder is too slow for is lost and counted: no thread waits.
 * A flight recorder ("flight=1") keeps each thread's newest calls in memory of
 * the program of a fixed size.  "seam" is started when they are written: by
 * seam_fdr_snapshot(), seam_fdr_stop() and exit().
 *
 * The recorder that the library starts is no child that wait() finds, and has
 * none of the program's descriptors.  It ends when the bundle is complete.
 *
 * At the end.  exit() and return from main() complete the bundle, unless a
 * child still records.  After _exit(), a crash and SIGKILL the recorder
 * completes it; a flight recorder loses everything.
 *
 * fork().  A child records too, under its own pid, into a log of its own in the
 * same bundle; it has none of its parent's records.  That of a flight recorder
 * is in a bundle of its own, NAME-PID.seam, and lost where the child runs
 * another program or ends by _exit().
 *
 * Arguments are not NULL, but where it is said: there is no check.
 *
 * Promises to the program:
 *  - Recording changes no register, flag or errno that a function or the
 *    program can see, and allocates nothing by malloc.  Calls of this header
 *    may use malloc where their comment says so.
 *  - A function may be called in a signal handler if its comment says so; the
 *    others neither there nor in a constructor of a library that is loaded by
 *    dlopen().
 *  - No signal is sent, and no handler of signals is installed.
 *  - A program with AT_SECURE (set-user-ID) never records.
 *
 * Functions have ids, from 1 on.  An id is never used for another function,
 * but with -finstrument-functions for one of a library that is loaded where
 * another was unloaded: it has the name of one of both.
 * Those of the executable's XRay instrumentation come first, in the order of
 * its xray_instr_map, so llvm-xray -instr_map=PROGRAM has the same.
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
 * @options is KEY=VALUE, with ';' between two of them; NULL: those of the
 * environment variable SEAM_TRACE, or none:
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
 *				one: each thread records half of its memory
 *				after it, then nothing
 *	out=DIR			the bundle; default NAME-PID.seam in the current
 *				folder.  One that is there becomes DIR.old.  Not
 *				used under "seam record --trace"
 *
 * Without GLOBs no symbols are needed: stripped programs can be recorded.  With
 * them, those of a stripped program are in its separate debug file, which needs
 * the program's build id.
 *
 * A later start, after seam_fdr_stop(), may have other options: all but
 * flight=, which triggers set too.  A start with triggers then costs all
 * functions what min= does.
 *
 * seam_fdr_start_why() also writes the cause of a failure as a line to @why, of
 * @why_bytes: for -EINVAL the part of @options that is wrong.
 *
 * Returns 0; -EINVAL: @options is not of that form, or flight= is not as at
 * the first start; -EALREADY: it records already; -EPERM: the program has other
 * rights than its user (AT_SECURE), a seccomp filter was set, or valgrind runs
 * it; -EEXIST: out= is not a bundle (of a flight recorder seam_fdr_stop() says
 * so); -ENOENT: there is no "seam", or no folder for out=; -EBUSY: another thread is in seam_fdr_stop();
 * -ETIMEDOUT: the recorder does not answer; -ENOMEM; or -errno of what could not
 * be made.
 *
 * Threads: any one, not in a handler.  Uses malloc.  Cost: 1 ms, 30 ms to start
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
 * library's descriptor, so the bundle is complete after its end; -EPIPE: the
 * recorder has ended; -ETIMEDOUT: it goes on after 60 s; or the first -errno of
 * what could not be written: what was written is a valid log all the same.
 *
 * Threads: any one, not in a handler.  Cost: 50 ms at least, and a copy of the
 * log, if more than one thread recorded.
 */
SEAM_FDR_PUBLIC
int seam_fdr_stop(void);

/*
 * A flight recorder: write what it has now to the new bundle @folder, and go
 * on.  One that is there becomes FOLDER.old.
 *
 * Returns 0; -EINVAL: @folder is NULL, or the recording's own; -EEXIST: @folder
 * is not a bundle; -ENOENT: not recording; -ENOTSUP: there is a
 * recorder: under "seam record" use "seam snapshot PID", and a full trace is in
 * its bundle; -EBUSY: another thread writes; or -errno.
 *
 * Threads: any one, not in a handler; others record meanwhile.  Cost: 100 ms,
 * and a copy of what it writes.
 */
SEAM_FDR_PUBLIC
int seam_fdr_snapshot(const char *folder);

/* The bundle's absolute path; "": not recording, or under "seam record". */
SEAM_FDR_PUBLIC
const char *seam_fdr_path(void);

/*
 * Records that a flight recorder has lost so far, since the library was loaded,
 * for want of memory.  0 with a recorder, which has these counts.  Any thread, in handlers too.
 */
SEAM_FDR_PUBLIC
uint64_t seam_fdr_lost(void);

/* -- which functions ------------------------------------------------------- */

/*
 * Patch, or unpatch, the functions whose names match @glob, in all images
 * that are loaded, while threads run in them.  From then on, until then, their
 * calls are recorded; of a call that has begun before only the exit is, or only
 * the entry.  Not for -finstrument-functions.
 *
 * Returns the number of functions with such a name; -ENOENT: there are none
 * with a sled; -EAGAIN: recording is not set up; -ENOMEM, -EACCES: the code
 * cannot be changed.
 *
 * Threads: any one, not in a handler.  Uses malloc, reads all symbols.
 */
SEAM_FDR_PUBLIC
int64_t seam_fdr_patch_functions(const char *glob);
SEAM_FDR_PUBLIC
int64_t seam_fdr_unpatch_functions(const char *glob);

/* The same for one function.  0; or as above.  Cost: 6 us. */
SEAM_FDR_PUBLIC
int seam_fdr_patch_id(uint32_t id);
SEAM_FDR_PUBLIC
int seam_fdr_unpatch_id(uint32_t id);

/*
 * The ids of functions whose names match @glob, ascending, at most @n; @ids may
 * be NULL where @n is 0.  Returns how many there are, which may be more; or
 * -errno as above, -EAGAIN also after seam_fdr_stop().
 */
SEAM_FDR_PUBLIC
int64_t seam_fdr_find(const char *glob, uint32_t *ids, size_t n);

/* -- events ---------------------------------------------------------------- */

/*
 * Record @bytes at @data, with the time.  __xray_customevent() of clang does
 * the same.  More than SEAM_FDR_MAX_EVENT_BYTES are cut.
 *
 * Any thread, in handlers too.  Does nothing while nothing is recorded.  Cost:
 * 20 ns, and a copy; the builtin 150 ns, because its address is checked.
 */
SEAM_FDR_PUBLIC
void seam_fdr_log_event(const void *data, size_t bytes);

/*
 * Record @bytes at @data as an event of @type; data that is text should be
 * JSON, views then show its members.  __xray_typedevent() does the same.
 */
SEAM_FDR_PUBLIC
void seam_fdr_log_typed(uint16_t type, const void *data, size_t bytes);

/*
 * The number of the type @name, of which at most 255 bytes are used: the same
 * for the same name, from 1 on.  Views show the name.
 *
 * Returns -ENOSPC after 1024 types, -EINVAL where @name is empty.  Threads: any
 * one, not in a handler.
 */
SEAM_FDR_PUBLIC
int seam_fdr_register_type(const char *name);

/* -- calls that the program records itself --------------------------------- */

/*
 * An id for something that is no function of the compiler's: a request, a
 * function of an interpreter, code made at run time.  Each call of this
 * function gives a new id, so call it once for each name.  At most 255 bytes
 * of @name are used.
 *
 * Returns the id; 0: there are no more (65536).  Threads: any one, not in a
 * handler.  Uses malloc.
 */
SEAM_FDR_PUBLIC
uint32_t seam_fdr_register_function(const char *name);

/*
 * Record the entry into @id, with @n arguments, at most
 * SEAM_FDR_MAX_LOGGED_ARGUMENTS, NULL where @n is 0; the exit.  Entries and
 * exits of a thread nest with those of its functions.
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
