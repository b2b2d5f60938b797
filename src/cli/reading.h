/* SPDX-License-Identifier: MIT */
/*
 * reading.h - what every command that reads a recording has in common
 *
 * Its options, declared once and spliced into each command's table, and the
 * steps from a command line to a profile with a selection over it:
 *
 *	struct options { struct seam_reading reading; bool tree; };
 *	static const struct seam_option options[] = {
 *		SEAM_OPTION(struct options, tree, ...),
 *		SEAM_READING_OPTIONS(struct options, reading),
 *	};
 */
#ifndef SEAM_READING_H
#define SEAM_READING_H

#include "cli/command.h"
#include "model/load.h"
#include "model/profile/selection.h"
#include "model/profile/tally.h"
#include "model/xray/trace.h"

struct seam_reading {
	struct seam_option_list symfs;
	struct seam_option_list jit;
	bool no_inline;
	bool debuginfod;
	const char *map;
	const char *time;
	const char *thread;
	const char *layers;
	const char *event;
	const char *input;	/* -i: in place of the operand */
	const char *callers_of;		/* of report only */
	const char *callees_of;
	bool lines;		/* source lines are shown */
};

#define SEAM_READING_OPTIONS(type, member)				\
	{ .kind = SEAM_OPTION_HEADING, .help = "Selection" },		\
	SEAM_OPTION(type, member.time, SEAM_OPTION_STRING, 0, "time",	\
		    "A,B", "what lies in this time of the recording",	\
		    .detail = "Times count from its start: in seconds "	\
		    "(1.5,2), with a unit (300ms,1s) or in percent "	\
		    "(10%,20%). Either may be left out. A belongs to "	\
		    "it, B no longer. A call of an XRay log belongs "	\
		    "to the time in which it begins; reports show its "	\
		    "time as far as it lies in it."),			\
	SEAM_OPTION(type, member.thread, SEAM_OPTION_STRING, 0,		\
		    "thread", "THREAD", "a thread, by number or name",	\
		    .detail = "A name takes all threads that ended "	\
		    "with it, and the samples of others from when they "\
		    "had it."),						\
	SEAM_OPTION(type, member.layers, SEAM_OPTION_SET, 0, "layer",	\
		    "LAYERS", "only these layers, with commas",		\
		    .choices = "kernel|native|jit|guest",		\
		    .detail = "Frames of others are taken out of the "	\
		    "stacks; a sample with no frame left does not "	\
		    "count."),						\
	SEAM_OPTION(type, member.event, SEAM_OPTION_STRING, 0, "event",	\
		    "NAME", "samples of this event",			\
		    .detail = "Without it, reports show the events one "	\
		    "after another; a picture or a folded file has the "	\
		    "first that has samples, and the others are named."),	\
	SEAM_SYMBOL_OPTIONS(type, member)

/* Named as an option, as perf has it. */
#define SEAM_INPUT_OPTION(type, member)					\
	SEAM_OPTION(type, member.input, SEAM_OPTION_STRING, 'i',	\
		    "input", "FILE", "the recording, in place of FILE")

/* Those of them that say where names come from. */
#define SEAM_SYMBOL_OPTIONS(type, member)				\
	{ .kind = SEAM_OPTION_HEADING, .help = "Symbols" },		\
	SEAM_OPTION(type, member.no_inline, SEAM_OPTION_FLAG, 0,	\
		    "no-inline", NULL, "leave inlined functions out"),	\
	SEAM_OPTION(type, member.symfs, SEAM_OPTION_STRINGS, 0,		\
		    "symfs", "DIR", "look for binaries under DIR first", \
		    .detail = "May be given several times. A binary is " \
		    "only used when its build id is the recorded one."), \
	SEAM_OPTION(type, member.jit, SEAM_OPTION_STRINGS, 0, "jit",	\
		    "PATH", "a JIT's dump or map, or a folder of them",	\
		    .detail = "May be given several times. Without it " \
		    "jit-PID.dump and perf-PID.map are looked for in "	\
		    "the recording, beside it, and where the runtime "	\
		    "wrote them."),					\
	SEAM_OPTION(type, member.debuginfod, SEAM_OPTION_FLAG, 0,	\
		    "debuginfod", NULL,					\
		    "ask debuginfod servers for debug information",	\
		    .detail = "They are those in DEBUGINFOD_URLS. "	\
		    "Without this option only the local cache is read."),	\
	SEAM_OPTION(type, member.map, SEAM_OPTION_STRING, 'm', "map",	\
		    "FILE", "the program that wrote an XRay log",	\
		    .detail = "Or its instrumentation map as YAML. Without " \
		    "it the functions of an XRay log are numbers.")

/* What the stacks of a picture or a folded file stand on. */
#define SEAM_GROUP_OPTION(type, member)					\
	SEAM_OPTION(type, member, SEAM_OPTION_STRING, 0, "by", "WHAT",	\
		    "the root frame of each stack (comm)",		\
		    .choices = "comm|thread|process|all",		\
		    .detail = "Comm is the thread's name at the sample: " \
		    "threads of one name are merged. Thread keeps each "  \
		    "apart, process merges those of a process, all "	\
		    "merges all.")

/* A choice of that option as a group. */
enum seam_group seam_reading_group(const char *by);

/*
 * Whether what was given with --symfs and --jit is there: somebody who names
 * a place wants what is in it.  Either may be NULL.  0, or as stat(2).
 */
int seam_reading_check(const struct seam_option_list *symfs,
		       const struct seam_option_list *jit,
		       struct seam_err *err);

/* The options as a loader takes them; borrows from @reading. */
struct seam_load_options
seam_reading_load_options(const struct seam_reading *reading);

/* A recording that is open: its profile, and what is selected of it. */
struct seam_opened {
	const char *path;
	const char *const *more;	/* XRay logs read with it */
	size_t n_more;
	struct seam_profile profile;
	struct seam_selection selection;
	struct seam_selected selected;
};

/*
 * Load the recording that the operands argv[first..] name (one; several when
 * they are XRay logs; the default without any) and make the selection.
 * Returns SEAM_EXIT_DONE, or the status to exit with when it failed, which
 * has been said then.
 * seam_reading_close() is due in both cases.
 */
int seam_reading_open(struct seam_opened *opened,
		      const struct seam_command *command,
		      const struct seam_reading *reading, int argc,
		      char **argv, int first);
void seam_reading_close(struct seam_opened *opened);

/* A line: --time @time begins after the end of what is so long. */
void seam_reading_say_length(const char *time, uint64_t start_ns,
			     uint64_t end_ns);

/* SEAM_EXIT_LOSSY when the recording lost or skipped anything, else DONE. */
int seam_reading_status(const struct seam_opened *opened);

/*
 * For outputs that have one number a stack: where the samples are of several
 * events, whose numbers must not be added up, select the first that has any,
 * and say so on stderr, with the others' names.
 */
void seam_reading_take_one_event(struct seam_opened *opened);

/*
 * Say on stderr what of XRay logs could not be read, @problems, and that they
 * are empty or have no frequency.  Returns the exit status.
 */
int seam_reading_say_problems(const struct seam_trace *trace,
			      const struct seam_xray_problems *problems);

/* For outputs that have no place for them: losses and notes on stderr. */
void seam_reading_say_losses(const struct seam_opened *opened);

#endif /* SEAM_READING_H */
