/* SPDX-License-Identifier: MIT */
/*
 * command.h - a command and its options, declared once
 *
 * One table of options a command is the source of four things: the parser,
 * --help, the man page and shell completion.  An option that is in the table
 * is in all of them, with the same words.
 */
#ifndef SEAM_COMMAND_H
#define SEAM_COMMAND_H

#include "base/base.h"
#include "base/err.h"

/* Exit status of every command but record's own (DESIGN: command line). */
enum seam_exit {
	SEAM_EXIT_DONE = 0,
	SEAM_EXIT_FAILED = 1,	/* or a gate was exceeded */
	SEAM_EXIT_USAGE = 2,
	SEAM_EXIT_LOSSY = 3,	/* done, but data was lost or skipped */
};

enum seam_option_kind {
	SEAM_OPTION_FLAG,	/* bool */
	SEAM_OPTION_STRING,	/* const char * */
	SEAM_OPTION_STRINGS,	/* struct seam_option_list: may be repeated */
	SEAM_OPTION_U64,	/* uint64_t */
	SEAM_OPTION_SIZE,	/* uint64_t, bytes: 64K, 512M, 2G */
	SEAM_OPTION_PERCENT,	/* double, 0 to 100 */
	SEAM_OPTION_SET,	/* const char *: some of choices, by commas */
	SEAM_OPTION_HEADING,	/* no option: a heading in help and man page */
};

enum { SEAM_OPTION_LIST = 64 };

struct seam_option_list {
	const char *items[SEAM_OPTION_LIST];
	size_t n;
};

struct seam_option {
	char letter;		/* 0: none */
	const char *name;	/* without the dashes; NULL: a letter only */
	/* "HZ"; NULL for a flag; "[BYTES]": optional, "" when not given. */
	const char *value;
	const char *choices;	/* "fp|none" for completion and checks; NULL */
	const char *help;	/* one sentence, lower case, no full stop */
	const char *detail;	/* more, for the man page only; NULL */
	enum seam_option_kind kind;
	uint64_t least;		/* of a U64 */
	size_t offset;		/* of the member in the command's struct */
};

#define SEAM_OPTION(type, member, kind_, letter_, name_, value_, help_, ...) \
	{								\
		.letter = (letter_), .name = (name_),			\
		.value = (value_), .help = (help_), .kind = (kind_),	\
		.offset = offsetof(type, member), __VA_ARGS__		\
	}

struct seam_command {
	const char *name;
	const char *summary;	/* "record a program", for 'seam help' */
	const char *synopsis;	/* "[options] [--] COMMAND [ARG...]" */
	const char *description;/* paragraphs divided by blank lines */
	const char *examples;	/* "command line\ttext\n" lines */
	const struct seam_option *options;
	size_t n_options;
	/* It reads recordings: it has --max-memory. */
	bool reads;
	/* Words behind the options belong to a COMMAND: stop at the first. */
	bool takes_command;
	/* Returns the exit status.  argv[0] is the command's name. */
	int (*run)(const struct seam_command *self, int argc, char **argv);
};

/* All commands in the order of 'seam help'; the table is in main.c. */
extern const struct seam_command *const seam_commands[];
extern const size_t seam_n_commands;

extern const struct seam_command seam_record_command;
extern const struct seam_command seam_snapshot_command;
extern const struct seam_command seam_report_command;
extern const struct seam_command seam_flamegraph_command;
extern const struct seam_command seam_calls_command;
extern const struct seam_command seam_convert_command;
extern const struct seam_command seam_annotate_command;
extern const struct seam_command seam_dump_command;
extern const struct seam_command seam_inject_command;
extern const struct seam_command seam_doctor_command;
extern const struct seam_command seam_help_command;

/*
 * The options that every command has: --help, --quiet, --color, ...; and
 * --max-memory, which those have that read recordings.  Number @i of those
 * that @command has not replaced by its own; NULL at the end.
 */
const struct seam_option *
seam_command_common(const struct seam_command *command, size_t i);

/*
 * Parse argv into the members of @into, which holds the defaults.  Options
 * and operands may mix, unless takes_command; "--" ends options.
 * Operands are moved behind the options; *@first is the index of the first.
 *
 * Returns 0; or -EINVAL when the usage was wrong (said on stderr already,
 * with the nearest option's name): the command returns SEAM_EXIT_USAGE; or
 * 1 when --help was asked for and given: it returns SEAM_EXIT_DONE.
 */
int seam_command_parse(const struct seam_command *command, int argc,
		       char **argv, void *into, int *first);

/* A line on stderr as a usage error has it.  Returns SEAM_EXIT_USAGE. */
__attribute__((format(printf, 2, 3)))
int seam_command_misused(const struct seam_command *command,
			 const char *fmt, ...);

/* "seam: " and the chain of causes on stderr.  Returns SEAM_EXIT_FAILED. */
int seam_command_failed(const struct seam_err *err);

/*
 * One line on stderr, "seam: " before it; not with --quiet.  Names from
 * outside may stand in it: what acts on a terminal is escaped.
 */
__attribute__((format(printf, 1, 2)))
void seam_command_say(const char *fmt, ...);

/* Whether --verbose was given: say what is only of use to the curious. */
bool seam_command_verbose(void);

/* Whether long text on a terminal may go through a pager. */
bool seam_command_pages(void);

/* Whether to colour what goes to @fd (--color, NO_COLOR, a terminal). */
bool seam_command_colors(int fd);

#endif /* SEAM_COMMAND_H */
