/* SPDX-License-Identifier: MIT */
/*
 * command.h - a command and its options, declared once
 *
 * A command has one table of options, from which the parser, --help, the man
 * page and shell completion are made.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

/* Exit status of every command; 'record' returns that of its COMMAND. */
enum seam_exit {
	SEAM_EXIT_HELP = -1,	/* main() prints the help of the command: 0 */
	SEAM_EXIT_DONE = 0,
	SEAM_EXIT_FAILED = 1,
	SEAM_EXIT_USAGE = 2,
	SEAM_EXIT_LOSSY = 3,	/* done, but data was lost or skipped */
	SEAM_EXIT_GATE = 4,	/* 'diff': a gate failed */
	SEAM_EXIT_UNDECIDED = 5,	/* 'diff': a gate cannot be decided */
	/* As a shell reports them; Source: POSIX.1-2017, 2.8.2. */
	SEAM_EXIT_CANNOT_START = 126,
	SEAM_EXIT_NOT_FOUND = 127,
	SEAM_EXIT_SIGNAL = 128,		/* and the signal's number */
};

enum seam_option_kind {
	SEAM_OPTION_FLAG,	/* bool */
	SEAM_OPTION_STRING,	/* const char * */
	SEAM_OPTION_STRINGS,	/* struct seam_option_list: may be repeated */
	SEAM_OPTION_U64,	/* uint64_t */
	SEAM_OPTION_SIZE,	/* uint64_t, bytes: 64K, 512M, 2G */
	SEAM_OPTION_PERCENT,	/* double, 0 to 100 */
	SEAM_OPTION_SET,	/* const char *: choices, with commas */
	SEAM_OPTION_DIVIDER,	/* uint64_t: operands before it */
	SEAM_OPTION_HEADING,	/* a heading in help and man page */
};

enum { SEAM_OPTION_LIST = 64 };

struct seam_option_list {
	const char *items[SEAM_OPTION_LIST];
	size_t n;
};

struct seam_option {
	char letter;		/* 0: none */
	const char *name;	/* without the dashes; NULL: a letter only */
	/* "HZ"; NULL for a flag; "[BYTES]": optional, "" if absent. */
	const char *value;
	const char *choices;	/* "fp|none", the valid values; NULL: any */
	/* "auto|fp", what completion offers if others are valid; NULL */
	const char *suggestions;
	const char *help;	/* one sentence, lower case, no full stop */
	const char *detail;	/* for the man page only; NULL: none */
	enum seam_option_kind kind;
	uint64_t least;		/* smallest value of a U64 */
	size_t offset;		/* of the member in the command's struct */
};

/* @kind_ is FLAG, STRING, ... */
#define SEAM_OPTION(type, member, kind_, letter_, name_, value_, help_, ...) \
	{								\
		.letter = (letter_), .name = (name_), .value = (value_), \
		.help = (help_), .kind = SEAM_OPTION_##kind_,		\
		.offset = offsetof(type, member), __VA_ARGS__		\
	}

struct seam_command {
	const char *name;
	const char *summary;	/* "record a program", for 'seam help' */
	const char *synopsis;	/* "[options] [--] COMMAND [ARG...]" */
	const char *description;/* paragraphs separated by blank lines */
	const char *limits;	/* for the man page only; NULL: none */
	const char *examples;	/* "command line\ttext\n" lines */
	const char *statuses;	/* more of them: "4\ttext\n" lines, or NULL */
	const struct seam_option *options;
	size_t n_options;
	/* It reads recordings, and has --max-memory. */
	bool reads;
	/* A program of its own: there is no "seam" before its name. */
	bool is_program;
	/* The first word that is no option begins a COMMAND: stop there. */
	bool takes_command;
	/* Returns the exit status.  argv[0] is the command's name. */
	int (*run)(const struct seam_command *self, int argc, char **argv);
};

/* All commands in the order of 'seam help'; the table is in main.c. */
extern const struct seam_command *const seam_commands[];
extern const size_t seam_n_commands;

/* Programs that are second names of seam; the table is in main.c. */
extern const struct seam_command *const seam_programs[];
extern const size_t seam_n_programs;

extern const struct seam_command seam_parse_sysprof_program;
extern const struct seam_command seam_record_command;
extern const struct seam_command seam_snapshot_command;
extern const struct seam_command seam_stat_command;
extern const struct seam_command seam_top_command;
extern const struct seam_command seam_agent_command;
extern const struct seam_command seam_report_command;
extern const struct seam_command seam_flamegraph_command;
extern const struct seam_command seam_view_command;
extern const struct seam_command seam_calls_command;
extern const struct seam_command seam_convert_command;
extern const struct seam_command seam_annotate_command;
extern const struct seam_command seam_pack_command;
extern const struct seam_command seam_push_command;
extern const struct seam_command seam_fleet_command;
extern const struct seam_command seam_dump_command;
extern const struct seam_command seam_inject_command;
extern const struct seam_command seam_diff_command;
extern const struct seam_command seam_doctor_command;
extern const struct seam_command seam_fleet_init_command;
extern const struct seam_command seam_help_command;

/*
 * The common options: --help, --quiet, --color, ...; and --max-memory of the
 * commands that read recordings.  Number @i of those that @command has no
 * option of its own for; NULL at the end.
 */
const struct seam_option *
seam_command_common(const struct seam_command *command, size_t i);

/*
 * Parse argv into the members of @into, which holds the defaults.  Options
 * and operands may mix, unless takes_command; "--" ends options.
 * Operands are moved after the options; *@first is the index of the first.
 *
 * Returns 0, or what the command returns: SEAM_EXIT_USAGE after a message about
 * wrong usage, SEAM_EXIT_HELP with --help.
 */
int seam_command_parse(const struct seam_command *command, int argc,
		       char **argv, void *into, int *first);

/* "65536", "64K", "512M", "2G" to bytes; false for all else, and for 0. */
bool seam_command_size(const char *text, uint64_t *size, bool *has_unit);

/* Print a usage error on stderr.  Returns SEAM_EXIT_USAGE. */
__attribute__((format(printf, 2, 3)))
int seam_command_misused(const struct seam_command *command,
			 const char *fmt, ...);

/* Print "seam: " and the chain of causes.  Returns SEAM_EXIT_FAILED. */
int seam_command_failed(const struct seam_err *err);

/*
 * Print "seam: " and one line on stderr, unless --quiet is given.  Control
 * characters in it are escaped.
 */
__attribute__((format(printf, 1, 2)))
void seam_command_say(const char *fmt, ...);

/*
 * How the user called the recording @path, an operand or that of --input: an
 * archive by its own name, not by that of the folder that it was unpacked to.
 */
const char *seam_command_named(const char *path);

/* Have it return @name for @path, which both stay.  0 or -ENOMEM. */
int seam_command_name(const char *path, const char *name);

/* Whether --verbose was given. */
bool seam_command_verbose(void);

/* Whether long text on a terminal may go through a pager. */
bool seam_command_pages(void);

/* Whether to colour output to @fd (--color, NO_COLOR, a terminal). */
bool seam_command_colors(int fd);
