/* SPDX-License-Identifier: MIT */
/*
 * help.c - 'seam help': the option tables as help, manual pages in mdoc, and
 * completion scripts
 */
#include "cli/commands/help.h"

#include <limits.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/hints.h"
#include "cli/pager.h"

enum {
	WIDTH = 80,
	HELP_COLUMN = 28,	/* start of the text of an option */
};

/* Print @text from @column on, broken at spaces before column 80. */
static void wrap(FILE *out, const char *text, int indent, int column)
{
	bool begun = false;

	while (*text) {
		int n = (int)strcspn(text, " \n");

		/* a list of choices that is longer than a line */
		while (n > WIDTH - indent && memchr(text, '|', (size_t)n - 1))
			for (n--; text[n - 1] != '|'; n--)
				;
		if (begun && column + 1 + n > WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			begun = false;
		}
		if (n) {
			column += fprintf(out, "%s%.*s", begun ? " " : "", n,
					  text);
			begun = true;
		}
		text += n + (text[n] == ' ' || text[n] == '\n');
	}
	fputc('\n', out);
}

/* "  -F, --freq=HZ", and the help from its column on. */
static void print_option(FILE *out, const struct seam_option *option)
{
	const char *value = option->value;
	char text[512];
	int column;

	if (option->kind == SEAM_OPTION_HEADING) {
		fprintf(out, "\n%s:\n", option->help);
		return;
	}
	column = option->letter ? fprintf(out, "  -%c", option->letter) :
		 fprintf(out, "    ");
	if (option->name)
		column += fprintf(out, "%s--%s", option->letter ? ", " : "  ",
				  option->name);
	if (value && value[0] == '[')	/* "[BYTES]" is shown as "[=BYTES]" */
		column += fprintf(out, "[=%s", value + 1);
	else if (value)
		column += fprintf(out, "%c%s", option->name ? '=' : ' ', value);
	if (column + 2 > HELP_COLUMN) {
		fputc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", HELP_COLUMN - column, "");
	snprintf(text, sizeof(text), "%s%s%s", option->help,
		 option->choices ? ": " : "",
		 option->choices ? option->choices : "");
	wrap(out, text, HELP_COLUMN, HELP_COLUMN);
}

/* Paragraphs are separated by blank lines. */
static void print_paragraphs(FILE *out, const char *text)
{
	while (text && *text) {
		const char *end = strstr(text, "\n\n");
		size_t n = end ? (size_t)(end - text) : strlen(text);
		char paragraph[2048];

		snprintf(paragraph, sizeof(paragraph), "%.*s", (int)n, text);
		fputc('\n', out);
		wrap(out, paragraph, 0, 0);
		text = end ? end + 2 : NULL;
	}
}

void seam_help_print(FILE *out, const struct seam_command *command)
{
	const char *seam = command->is_program ? "" : "seam ";
	const char *line = command->examples ? command->examples : "";
	const struct seam_option *option = command->options;

	fprintf(out, "%s%s - %s\n\nusage: %s%s %s\n", seam, command->name,
		command->summary, seam, command->name, command->synopsis);
	print_paragraphs(out, command->description);
	if (command->n_options && option->kind != SEAM_OPTION_HEADING)
		fprintf(out, "\nOptions:\n");
	for (size_t i = 0; i < command->n_options; i++)
		print_option(out, &option[i]);
	fprintf(out, "\nGeneral:\n");
	for (size_t i = 0; (option = seam_command_common(command, i)); i++)
		print_option(out, option);
	if (*line)
		fprintf(out, "\nExamples:\n");
	while (*line) {
		size_t n = strcspn(line, "\n");
		size_t tab = strcspn(line, "\t\n");

		fprintf(out, "  %.*s\n", (int)tab, line);
		if (tab < n)
			fprintf(out, "      %.*s\n", (int)(n - tab - 1),
				line + tab + 1);
		line += n + (line[n] == '\n');
	}
}

void seam_help_overview(FILE *out)
{
	fprintf(out, "seam - profile every layer of a program on one clock\n\n"
		"usage: seam COMMAND [options] [ARG...]\n"
		"       seam --help | --version\n\nCommands:\n");
	for (size_t i = 0; i < seam_n_commands; i++)
		fprintf(out, "  %-12s%s\n", seam_commands[i]->name,
			seam_commands[i]->summary);
	fprintf(out, "\nPrograms installed with it:\n");
	for (size_t i = 0; i < seam_n_programs; i++)
		fprintf(out, "  %s\n      %s\n", seam_programs[i]->name,
			seam_programs[i]->summary);
	fprintf(out, "\n'seam COMMAND --help' lists the options of a command;"
		"\n'seam help --man COMMAND' shows its manual page.\n");
}

const struct seam_command *seam_command_find(const char *name)
{
	for (size_t i = 0; i < seam_n_commands; i++)
		if (strcmp(seam_commands[i]->name, name) == 0)
			return seam_commands[i];
	return NULL;
}

const struct seam_command *seam_command_find_program(const char *path)
{
	for (size_t i = 0; i < seam_n_programs; i++)
		if (strcmp(seam_programs[i]->name, seam_file_name(path)) == 0)
			return seam_programs[i];
	return NULL;
}

int seam_command_unknown(const char *name)
{
	struct seam_closest_word near = { 0 };
	const char *instead = seam_perf_equivalent(name, NULL);
	char safe[128];

	if (instead) {
		fprintf(stderr, "seam: there is no command '%s': %s\n",
			name, instead);
		return SEAM_EXIT_USAGE;
	}
	for (size_t i = 0; i < seam_n_commands; i++)
		seam_closest_word_try(&near, name, seam_commands[i]->name);
	fprintf(stderr, "seam: there is no command '%s'%s%s%s\n"
		"'seam --help' lists the commands.\n",
		seam_text_copy(safe, sizeof(safe), name, SEAM_TEXT_TERMINAL),
		near.name ? "; did you mean '" : "",
		near.name ? near.name : "", near.name ? "'?" : "");
	return SEAM_EXIT_USAGE;
}

/* ---- manual pages ---- */

/* mdoc requires a date: of the last change to a page's own text. */
#define MAN_DATE "November 23, 2026"

/* Backslashes, hyphens, and a dot or quote that would begin a request. */
static void put_escaped(FILE *out, char c, bool at_start)
{
	if (c == '\\')
		fputs("\\e", out);
	else if (c == '-')
		fputs("\\-", out);
	else if (at_start && (c == '.' || c == '\''))
		fprintf(out, "\\&%c", c);
	else
		fputc(c, out);
}

/*
 * @size bytes as running text: each sentence begins a line, as mdoc requires,
 * and a word that would pass column 72 does so too.
 */
static void put_text(FILE *out, const char *text, size_t size)
{
	size_t column = 0;

	for (size_t i = 0; i < size; i++) {
		bool ends = i > 0 && text[i] == ' ' &&
			    (text[i - 1] == '.' || column + 1 +
			     strcspn(text + i + 1, " \n") > 72);

		if (text[i] == '\n' || ends) {
			fputc('\n', out);
			column = 0;
			continue;
		}
		put_escaped(out, text[i], column == 0);
		column++;
	}
	fputc('\n', out);
}

/* An argument of a macro: quoted, because it may hold spaces. */
static void put_argument(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputs("\\(dq", out);
		else
			put_escaped(out, *text, false);
	}
	fputc('"', out);
}

static void put_paragraphs(FILE *out, const char *text)
{
	while (text && *text) {
		const char *end = strstr(text, "\n\n");

		put_text(out, text, end ? (size_t)(end - text) : strlen(text));
		text = end ? end + 2 : NULL;
		if (text && *text)
			fputs(".Pp\n", out);
	}
}

static void put_head(FILE *out, const char *title, const char *name,
		     const char *summary)
{
	fputs(".\\\" Made by 'seam help --man' from the option tables.\n"
	      ".Dd " MAN_DATE "\n.Dt ", out);
	for (const char *c = title; *c; c++)
		fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
	fprintf(out, " 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd ", name);
	put_text(out, summary, strlen(summary));
}

/*
 * ".It Fl F , Fl \-freq Ns = Ns Ar HZ", and the help, which has no full stop,
 * as a sentence.
 */
static void put_option(FILE *out, const struct seam_option *option)
{
	const char *value = option->value;
	char text[512];

	fputs(".It ", out);
	if (option->letter)
		fprintf(out, "Fl %c", option->letter);
	if (option->name)
		fprintf(out, "%sFl \\-", option->letter ? " , " : "");
	for (const char *c = option->name; c && *c; c++)
		put_escaped(out, *c, false);
	if (value && value[0] == '[')
		fprintf(out, " Ns Oo = Ns Ar %.*s Oc",
			(int)strcspn(value + 1, "]"), value + 1);
	else if (value)
		fprintf(out, "%s Ar %s", option->name ? " Ns = Ns" : "",
			value);
	fputc('\n', out);
	snprintf(text, sizeof(text), "%c%s%s%s.",
		 option->help[0] >= 'a' && option->help[0] <= 'z' ?
		 option->help[0] - 'a' + 'A' : option->help[0],
		 option->help + 1, option->choices ? ": " : "",
		 option->choices ? option->choices : "");
	put_text(out, text, strlen(text));
	if (option->detail)
		put_text(out, option->detail, strlen(option->detail));
}

static void put_options(FILE *out, const struct seam_option *options, size_t n)
{
	bool open = false;

	for (size_t i = 0; i < n; i++) {
		if (options[i].kind == SEAM_OPTION_HEADING) {
			fprintf(out, "%s.Ss ", open ? ".El\n" : "");
			put_text(out, options[i].help,
				 strlen(options[i].help));
			open = false;
			continue;
		}
		if (!open)
			fputs(".Bl -tag -width Ds\n", out);
		open = true;
		put_option(out, &options[i]);
	}
	if (open)
		fputs(".El\n", out);
}

static void put_examples(FILE *out, const char *line)
{
	if (!line || !*line)
		return;
	fputs(".Sh EXAMPLES\n.Bl -tag -width Ds\n", out);
	while (*line) {
		size_t n = strcspn(line, "\n");
		size_t tab = strcspn(line, "\t\n");
		char command[512];

		snprintf(command, sizeof(command), "%.*s", (int)tab, line);
		fputs(".It Ic ", out);
		put_argument(out, command);
		fputc('\n', out);
		if (tab < n)
			put_text(out, line + tab + 1, n - tab - 1);
		line += n + (line[n] == '\n');
	}
	fputs(".El\n", out);
}

static void put_exit_status(FILE *out, const struct seam_command *command)
{
	const char *more = command ? command->statuses : NULL;

	fputs(".Sh EXIT STATUS\n", out);
	if (command && command->takes_command) {
		fputs("That of COMMAND when it ran.\n"
		      "It is 3 if COMMAND returned 0 and data was lost,\n"
		      "126 or 127 if COMMAND could not be started,\n"
		      "1 if the recording failed,\n"
		      "and 2 after wrong usage.\n", out);
		return;
	}
	fputs(".Bl -tag -width Ds\n"
	      ".It 0\nDone.\n"
	      ".It 1\nFailed.\n"
	      ".It 2\nWrong usage.\n"
	      ".It 3\nDone, but data was lost or skipped.\n", out);
	while (more && *more) {
		size_t tab = strcspn(more, "\t"), n = strcspn(more, "\n");

		fprintf(out, ".It %.*s\n", (int)tab, more);
		put_text(out, more + tab + 1, n - tab - 1);
		more += n + (more[n] == '\n');
	}
	fputs(".It 141\nThe reader of the output exited early "
	      "(SIGPIPE, as a shell reports it).\n"
	      ".El\n", out);
}

static void put_overview(FILE *out)
{
	put_head(out, "seam", "seam",
		 "profile every layer of a program on one clock");
	fputs(".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n"
	      ".Op Ar argument ...\n.Sh DESCRIPTION\n.Nm\n"
	      "records where a running program spends its time, from the\n"
	      "kernel up to the functions of a virtual machine's guest,\n"
	      "and shows all of it as one stack.\n"
	      "The commands are:\n.Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < seam_n_commands; i++) {
		const struct seam_command *command = seam_commands[i];

		fprintf(out, ".It Xr seam-%s 1\n", command->name);
		put_text(out, command->summary, strlen(command->summary));
	}
	fputs(".El\n", out);
	put_exit_status(out, NULL);
}

void seam_man_print(FILE *out, const struct seam_command *command)
{
	const struct seam_option *common;
	char name[64];

	if (!command) {
		put_overview(out);
		return;
	}
	snprintf(name, sizeof(name), "%s%s", command->is_program ? "" : "seam-",
		 command->name);
	put_head(out, name, name, command->summary);
	fprintf(out, ".Sh SYNOPSIS\n.Nm %s%s\n.Ar ",
		command->is_program ? "" : "seam ", command->name);
	put_argument(out, command->synopsis);
	fputs("\n.Sh DESCRIPTION\n", out);
	put_paragraphs(out, command->description);
	fputs(".Sh OPTIONS\n", out);
	put_options(out, command->options, command->n_options);
	fputs(".Ss General\n.Bl -tag -width Ds\n", out);
	for (size_t i = 0; (common = seam_command_common(command, i)); i++)
		put_option(out, common);
	fputs(".El\n", out);
	if (command->limits) {
		fputs(".Sh LIMITS\n", out);
		put_paragraphs(out, command->limits);
	}
	put_exit_status(out, command);
	put_examples(out, command->examples);
	fputs(".Sh SEE ALSO\n.Xr seam 1\n", out);
}

/*
 * ---- completion
 *
 * Each script completes commands, options, the choices of an option, and file
 * names.
 */

/* Called for each option of a command, its own first, then the common. */
typedef void seam_option_visit(FILE *out, const struct seam_command *command,
			       const struct seam_option *option);

static void each_option(FILE *out, const struct seam_command *command,
			seam_option_visit *visit)
{
	const struct seam_option *common;

	for (size_t i = 0; i < command->n_options; i++)
		if (command->options[i].kind != SEAM_OPTION_HEADING)
			visit(out, command, &command->options[i]);
	for (size_t i = 0; (common = seam_command_common(command, i)); i++)
		visit(out, command, common);
}

/* What a value may be, as "a|b"; NULL: not known. */
static const char *choices_of(const struct seam_option *option)
{
	return option->choices ? option->choices : option->suggestions;
}

/* "a|b" as "a b". */
static void put_choices(FILE *out, const char *choices)
{
	for (; *choices; choices++)
		fputc(*choices == '|' ? ' ' : *choices, out);
}

static void put_command_names(FILE *out)
{
	for (size_t i = 0; i < seam_n_commands; i++)
		fprintf(out, "%s%s", i ? " " : "", seam_commands[i]->name);
}

/* Text inside '...' of a shell; @special characters get a backslash. */
static void put_quoted(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr(special, *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void bash_choices(FILE *out, const struct seam_command *command,
			 const struct seam_option *option)
{
	(void)command;
	if (!choices_of(option))
		return;
	fputs("\t\t", out);
	if (option->name)
		fprintf(out, "--%s%s", option->name,
			option->letter ? "|" : "");
	if (option->letter)
		fprintf(out, "-%c", option->letter);
	fputs(") words='", out);
	put_choices(out, choices_of(option));
	fputs("' ;;\n", out);
}

static void bash_name(FILE *out, const struct seam_command *command,
		      const struct seam_option *option)
{
	(void)command;
	if (option->name)
		fprintf(out, " --%s", option->name);
	else
		fprintf(out, " -%c", option->letter);
}

/* A value may follow '=', which is a word of its own in bash. */
static void put_bash(FILE *out)
{
	fputs("# bash completion for seam\n"
	      "_seam() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]}\n"
	      "\tlocal prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal command=${COMP_WORDS[1]} options= words=\n"
	      "\tif [ \"$cur\" = = ]; then\n"
	      "\t\tcur=\n"
	      "\telif [ \"$prev\" = = ]; then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	      "\tfi\n"
	      "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W '", out);
	put_command_names(out);
	fputs(" --help --version' -- \"$cur\"))\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\tcase $command in\n", out);
	for (size_t i = 0; i < seam_n_commands; i++) {
		fprintf(out, "\t%s)\n\t\toptions='", seam_commands[i]->name);
		each_option(out, seam_commands[i], bash_name);
		fputs("'\n\t\tcase $prev in\n", out);
		each_option(out, seam_commands[i], bash_choices);
		fputs("\t\tesac ;;\n", out);
	}
	fputs("\tesac\n"
	      "\tif [ \"$command\" = help ] && [ -z \"$words\" ]; then\n"
	      "\t\toptions=\"$options ", out);
	put_command_names(out);
	fputs("\"\n"
	      "\tfi\n"
	      "\tif [ -n \"$words\" ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "\telif [ \"${cur#-}\" != \"$cur\" ] || "
	      "[ \"$command\" = help ]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
	      "\tfi\n"
	      "}\n"
	      "complete -o default -F _seam seam\n", out);
}

/* {-F+,--freq=}, as _arguments has names with a value. */
static void zsh_names(FILE *out, const struct seam_option *option)
{
	bool has_value = option->value != NULL;
	bool optional = has_value && option->value[0] == '[';
	const char *sign = !has_value ? "" : optional ? "=-" : "=";
	const char *after = !has_value ? "" : optional ? "-" : "+";

	if (option->letter && option->name)
		fprintf(out, "{-%c%s,--%s%s}", option->letter, after,
			option->name, sign);
	else if (option->name)
		fprintf(out, "--%s%s", option->name, sign);
	else
		fprintf(out, "-%c%s", option->letter, after);
}

/* '(-F --freq)'{-F+,--freq=}'[help]:HZ:(a b)' */
static void zsh_option(FILE *out, const struct seam_command *command,
		       const struct seam_option *option)
{
	bool several = option->kind == SEAM_OPTION_STRINGS;

	(void)command;
	fputs(" \\\n\t\t\t", out);
	if (option->letter && option->name && !several)
		fprintf(out, "'(-%c --%s)'", option->letter, option->name);
	else if (several)
		fputs("'*'", out);
	zsh_names(out, option);
	fputs("'[", out);
	put_quoted(out, option->help, "[]\\");
	fputc(']', out);
	if (option->value) {
		fprintf(out, "%s:", option->value[0] == '[' ? ":" : "");
		put_quoted(out, option->value, ":[]\\");
		fputs(choices_of(option) ? ":(" : ":_files", out);
		if (choices_of(option)) {
			put_choices(out, choices_of(option));
			fputc(')', out);
		}
	}
	fputc('\'', out);
}

static void put_zsh(FILE *out)
{
	fputs("#compdef seam\n"
	      "_seam() {\n"
	      "\tlocal -a commands\n"
	      "\tcommands=(\n", out);
	for (size_t i = 0; i < seam_n_commands; i++) {
		fprintf(out, "\t\t'%s:", seam_commands[i]->name);
		put_quoted(out, seam_commands[i]->summary, ":\\");
		fputs("'\n", out);
	}
	fputs("\t)\n"
	      "\tif (( CURRENT == 2 )); then\n"
	      "\t\t_describe command commands\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\tshift words\n"
	      "\t(( CURRENT-- ))\n"
	      "\tcase $words[1] in\n", out);
	for (size_t i = 0; i < seam_n_commands; i++) {
		fprintf(out, "\t%s)\n\t\t_arguments -s",
			seam_commands[i]->name);
		each_option(out, seam_commands[i], zsh_option);
		if (seam_commands[i] == &seam_help_command) {
			fputs(" \\\n\t\t\t'*:command:(", out);
			put_command_names(out);
			fputs(")' ;;\n", out);
		} else {
			fprintf(out, " \\\n\t\t\t'*:%s' ;;\n",
				seam_commands[i]->takes_command ?
				":command:_normal" : "file:_files");
		}
	}
	fputs("\tesac\n"
	      "}\n"
	      "if [ \"$funcstack[1]\" = _seam ]; then\n"
	      "\t_seam \"$@\"\n"
	      "else\n"
	      "\tcompdef _seam seam\n"
	      "fi\n", out);
}

static void fish_option(FILE *out, const struct seam_command *command,
			const struct seam_option *option)
{
	bool must_have = option->value && option->value[0] != '[';

	fprintf(out, "complete -c seam -n '__fish_seen_subcommand_from %s'",
		command->name);
	if (option->name)
		fprintf(out, " -l %s", option->name);
	if (option->letter)
		fprintf(out, " -s %c", option->letter);
	if (must_have)
		fputs(" -r", out);
	if (choices_of(option)) {
		fputs(" -f -a '", out);
		put_choices(out, choices_of(option));
		fputc('\'', out);
	}
	fputs(" -d '", out);
	put_quoted(out, option->help, "\\");
	fputs("'\n", out);
}

static void put_fish(FILE *out)
{
	fputs("# fish completion for seam\n", out);
	for (size_t i = 0; i < seam_n_commands; i++)
		fprintf(out, "complete -c seam -n __fish_use_subcommand -f "
			"-a %s -d \"%s\"\n", seam_commands[i]->name,
			seam_commands[i]->summary);
	for (size_t i = 0; i < seam_n_commands; i++)
		each_option(out, seam_commands[i], fish_option);
	fputs("complete -c seam -n '__fish_seen_subcommand_from help' -f "
	      "-a '", out);
	put_command_names(out);
	fputs("'\n", out);
}

/* ---- the command ---- */

struct help_options {
	bool man;
	const char *completion;
};

static const struct seam_option help_options[] = {
	SEAM_OPTION(struct help_options, man, FLAG, 0, "man", NULL,
		    "show the manual page",
		    .detail = "Without a COMMAND it is the page of seam "
		    "itself. Where standard output is no terminal, the page is "
		    "printed in mdoc, its source."),
	SEAM_OPTION(struct help_options, completion, STRING, 0,
		    "completion", "SHELL", "print the completion script",
		    .choices = "bash|zsh|fish"),
};

/* What formats mdoc for a terminal; NULL: print it as it is. */
static const char *find_formatter(void)
{
	bool pages = seam_command_pages();
	char path[PATH_MAX];

	if (!isatty(STDOUT_FILENO))
		return NULL;
	if (seam_file_find_program("man", path))
		return pages ? "man -l -" : "man -P cat -l -";
	if (seam_file_find_program("mandoc", path))
		return pages ? "mandoc -a" : "mandoc";
	return NULL;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*put)(FILE *out);
	} shells[] = {
		{ "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish },
	};
	struct help_options options = { 0 };
	const struct seam_command *command = NULL;
	int first;
	int status = seam_command_parse(self, argc, argv, &options, &first);

	if (status)
		return status;
	if (argc - first > 1)
		return seam_command_misused(self, "one COMMAND at a time");
	if (first < argc) {
		command = seam_command_find(argv[first]);
		if (!command)
			command = seam_command_find_program(argv[first]);
		if (!command)
			return seam_command_unknown(argv[first]);
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(shells); i++)
		if (options.completion &&
		    strcmp(shells[i].name, options.completion) == 0) {
			shells[i].put(stdout);
			return SEAM_EXIT_DONE;
		}
	if (options.man)
		seam_pager_start_as(find_formatter(), SEAM_EXIT_DONE);
	seam_pager_start(SEAM_EXIT_DONE);
	if (options.man)
		seam_man_print(stdout, command);
	else if (command)
		seam_help_print(stdout, command);
	else
		seam_help_overview(stdout);
	return SEAM_EXIT_DONE;
}

const struct seam_command seam_help_command = {
	.name = "help",
	.summary = "show help, manual pages and shell completion",
	.synopsis = "[options] [COMMAND]",
	.description = "Shows the description and the options of a command, "
		"its manual page, or a completion script for a shell.",
	.examples =
		"seam help report\tthe options of seam report\n"
		"seam help --man report\tits manual page\n"
		"source <(seam help --completion bash)\t"
		"complete commands and options in this shell\n",
	.options = help_options,
	.n_options = SEAM_ARRAY_SIZE(help_options),
	.run = run,
};
