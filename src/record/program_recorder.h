/* SPDX-License-Identifier: MIT */
/*
 * program_recorder.h - the recorder of one program, which has started it
 *
 * For seam_fdr_start() in a program that no recorder runs: it takes the calls
 * of that program, of its forked children, and of programs that connect to the
 * same link, and writes them to a bundle.  It has no perf events, so it needs
 * no rights.  doc/design/standalone.md has the protocol.
 */
#ifndef SEAM_PROGRAM_RECORDER_H
#define SEAM_PROGRAM_RECORDER_H

/*
 * Record to a bundle at @path until the program requests the end, on the socket
 * @control, or is over.  @since NULL, or the tie "TSC:NS" of when the calls of a
 * flight recorder began.  Returns 0 or the first -errno of the bundle, which the
 * program is told, too.  Threads: one recording a process.
 */
int seam_program_recorder_run(int control, const char *path, const char *since);

#endif /* SEAM_PROGRAM_RECORDER_H */
