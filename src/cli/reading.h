/* SPDX-License-Identifier: MIT */
/*
 * reading.h - common options and steps of commands that read a recording
 *
 * The options are declared once and spliced into each command's table:
 *
 *	struct options { struct seam_reading reading; bool tree; };
 *	static const struct seam_option options[] = {
 *		SEAM_OPTION(struct options, tree, ...),
 *		SEAM_READING_OPTIONS(struct options, reading),
 *	};
 */
#pragma once

#include "base/file.h"
#include "cli/command.h"
#include "export/exporter.h"
#include "model/load.h"
#include "model/profile/selection.h"
#include "model/profile/tally.h"
#include "model/xray/trace.h"
#include "symbol/xray/xray_map.h"

struct seam_reading {
	struct seam_option_list symfs;
	struct seam_option_list jit;
	bool no_inline;
	bool no_joins;
	bool debuginfod;
	const char *map;
	const char *time;
	const char *thread;
	const char *layers;
	const char *event;
	const char *input;	/* -i: in place of the operand */
	const char *callers_of;	/* this and the next: of report only */
	const char *callees_of;
	bool lines;		/* source lines are shown */
	bool latency;		/* of report only */
	bool like_parser;	/* sysprof: stacks as LuaJIT's own parser */
};

#define SEAM_READING_OPTIONS(type, member)				\
	{ .kind = SEAM_OPTION_HEADING, .help = "Selection" },		\
	SEAM_OPTION(type, member.time, STRING, 0, "time",		\
		    "A,B", "only this part of the recording",		\
		    .detail = "Times since its start: in seconds "	\
		    "(1.5,2), with a unit (300ms,1s) or in percent "	\
		    "(10%,20%). Either may be omitted. With @ they "	\
		    "are on the recording's clock, as 'seam calls --stacks' " \
		    "prints them (@57.25,@57.3). The range is "		\
		    "[A, B). Calls of an XRay log are selected if they " \
		    "begin in it; reports count their time up to B."),	\
	SEAM_OPTION(type, member.thread, STRING, 0,			\
		    "thread", "THREAD", "a thread, by number or name",	\
		    .detail = "A name selects all threads whose last "	\
		    "name it is, and the samples of other threads "	\
		    "while they had it."),				\
	SEAM_OPTION(type, member.layers, SET, 0, "layer",		\
		    "LAYERS", "only these layers, with commas",		\
		    .choices = "kernel|native|jit|guest",		\
		    .detail = "Frames of other layers are removed from " \
		    "the stacks; a sample with no frame left is not "	\
		    "counted."),					\
	SEAM_OPTION(type, member.event, STRING, 0, "event",		\
		    "NAME", "samples of this event, or of several with " \
		    "commas",						\
		    .detail = "The default is all events, one after "	\
		    "another, for reports, and the first one with "	\
		    "samples for a flame graph or a folded file. Several " \
		    "of one unit are one picture: with "		\
		    "cpu-clock,off-cpu,preempted and --by thread, the "	\
		    "width of a thread is its life time."),		\
	SEAM_OPTION(type, member.no_joins, FLAG, 0, "no-joins",		\
		    NULL, "leave cut stacks as they were recorded",	\
		    .detail = "A stack that is deeper than its copy, or " \
		    "that a signal left for another one, gets callers "	\
		    "that other samples of its thread have at the same " \
		    "addresses, after a frame '[joined]', if all of "	\
		    "these agree as far as the entry of the thread."),	\
	SEAM_SYMBOL_OPTIONS(type, member)

/* -i, as in perf. */
#define SEAM_INPUT_OPTION(type, member)					\
	SEAM_OPTION(type, member.input, STRING, 'i',			\
		    "input", "FILE", "the recording, in place of FILE")

#define SEAM_SYMFS_OPTION(type, member)					\
	SEAM_OPTION(type, member.symfs, STRINGS, 0,			\
		    "symfs", "DIR", "look for binaries under DIR first", \
		    .detail = "May be given several times. A binary is " \
		    "used only if its build id is the recorded one.")

#define SEAM_DEBUGINFOD_OPTION(type, member)				\
	SEAM_OPTION(type, member.debuginfod, FLAG, 0,			\
		    "debuginfod", NULL,					\
		    "download debug information from debuginfod servers", \
		    .detail = "The servers are those in "		\
		    "DEBUGINFOD_URLS. Without this option only the "	\
		    "local cache is read.")

/* The part about sources of symbols. */
#define SEAM_SYMBOL_OPTIONS(type, member)				\
	{ .kind = SEAM_OPTION_HEADING, .help = "Symbols" },		\
	SEAM_OPTION(type, member.no_inline, FLAG, 0,			\
		    "no-inline", NULL, "omit inlined functions"),	\
	SEAM_SYMFS_OPTION(type, member),				\
	SEAM_OPTION(type, member.jit, STRINGS, 0, "jit",		\
		    "PATH", "a JIT's dump or map, or a folder of them",	\
		    .detail = "May be given several times. Without it "	\
		    "jit-PID.dump and perf-PID.map are searched in the " \
		    "recording, its folder, and where the runtime "	\
		    "wrote them."),					\
	SEAM_DEBUGINFOD_OPTION(type, member),				\
	SEAM_OPTION(type, member.map, STRING, 'm', "map",		\
		    "FILE", "the program that wrote an XRay log",	\
		    .detail = "Or its instrumentation map as YAML. "	\
		    "The default is the map beside the log, PID.yaml of "	\
		    "PID.xray; without any, functions are numbers.")

/* The root frames of a flame graph or a folded file. */
#define SEAM_GROUP_OPTION(type, member)					\
	SEAM_OPTION(type, member, STRING, 0, "by", "WHAT",		\
		    "the root frame of each stack (comm)",		\
		    .choices = "comm|thread|process|vmstate|host|service|" \
		    "all",						\
		    .detail = "comm is the thread's name at the sample: " \
		    "threads of one name are merged. thread separates "	\
		    "all threads, process merges those of a process, "	\
		    "host and service those of a fleet's profiles, "	\
		    "vmstate separates by what a VM did (LFUNC, GC, "	\
		    "...), all merges everything.")

/* A choice of that option as a group. */
enum seam_group seam_reading_group(const char *by);

/* The options as a loader takes them; borrows from @reading. */
struct seam_load_options
seam_reading_load_options(const struct seam_reading *reading);

/*
 * Read the source file @path, in @symfs first; its name comes from debug
 * information or a VM and is not trusted: only a regular file of at most 16 MiB
 * is read, and a symbolic link is not followed.  0; or -errno and @file is
 * empty.
 */
int seam_reading_source(const struct seam_option_list *symfs, const char *path,
			struct seam_file *file);

/* An open recording: its profile, and the selection from it. */
struct seam_opened {
	const char *path;
	const char *const *more;	/* XRay logs read with it */
	size_t n_more;
	struct seam_profile profile;
	struct seam_selection selection;
	struct seam_selected selected;
};

/*
 * Load the recording named by the operands argv[first..] (one; several XRay
 * logs; without operands the default) and make the selection.
 * Returns SEAM_EXIT_DONE, or the status to exit with after an error message.
 * seam_reading_close() is due in both cases.
 */
int seam_reading_open(struct seam_opened *opened,
		      const struct seam_command *command,
		      const struct seam_reading *reading, int argc,
		      char **argv, int first);
void seam_reading_close(struct seam_opened *opened);

/*
 * Open the XRay logs @paths and the names of their functions, and select
 * --time: reading->map, else the maps beside the logs, and reading->time.
 * SEAM_EXIT_DONE, or as seam_reading_open(); both are closed by the caller.
 */
int seam_reading_open_logs(struct seam_trace *trace,
			   struct seam_xray_map *names,
			   const struct seam_reading *reading,
			   const char *const *paths, size_t n_paths);

/*
 * The recording of a command that takes one: FILE or -i; NULL: neither.
 * SEAM_EXIT_DONE, or as seam_reading_open().
 */
int seam_reading_operand(const struct seam_command *command,
			 const struct seam_reading *reading, int argc,
			 char **argv, int first, const char **path);

/* SEAM_EXIT_LOSSY when the recording lost or skipped anything, else DONE. */
int seam_reading_status(const struct seam_opened *opened);

/*
 * For outputs with one number per stack: if several events have samples, which
 * must not be added up, select the first, and name the others on stderr.
 */
void seam_reading_take_one_event(struct seam_opened *opened);

/*
 * Report on stderr parts of XRay logs that could not be read, @problems, and
 * logs that are empty or have no frequency.  Returns the exit status.
 */
int seam_reading_say_problems(const struct seam_trace *trace,
			      const struct seam_xray_problems *problems);

/*
 * Report on stderr which calls the recorders of bundles among @paths counted as
 * lost, and which of them have no end.  Returns whether there are any: exit
 * status 3.
 */
bool seam_reading_say_lost_calls(const char *const *paths, size_t n_paths);

/* Print the notes on stderr, with --verbose the details too. */
void seam_reading_say_notes(const struct seam_profile *profile);

/*
 * Write the selection with @exporter to @path, then print losses and notes.
 * Returns the exit status: also LOSSY if the format cannot hold some samples.
 */
int seam_reading_export(const struct seam_opened *opened, const char *path,
			const struct seam_exporter *exporter,
			struct seam_export *export);

/* Print losses and notes on stderr, for outputs that cannot have them. */
void seam_reading_say_lost(const struct seam_profile *profile);
void seam_reading_say_losses(const struct seam_opened *opened);
