/* SPDX-License-Identifier: MIT */
/* help.c - help from the option tables, and 'seam help' */
#include "cli/commands/help.h"

#include <limits.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/perf_equivalents.h"
#include "cli/closest.h"
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

/* "  -F, --freq=HZ"; returns the columns used. */
static int print_usage(FILE *out, const struct seam_option *option)
{
	const char *value = option->value;
	int column;

	column = option->letter ? fprintf(out, "  -%c", option->letter) :
		 fprintf(out, "    ");
	if (option->name)
		column += fprintf(out, "%s--%s", option->letter ? ", " : "  ",
				  option->name);
	if (!value)
		return column;
	if (value[0] == '[')	/* "[BYTES]" is shown as "[=BYTES]" */
		return column + fprintf(out, "[=%s", value + 1);
	return column + fprintf(out, "%c%s", option->name ? '=' : ' ', value);
}

static void print_option(FILE *out, const struct seam_option *option)
{
	char text[512];
	int column;

	if (option->kind == SEAM_OPTION_HEADING) {
		fprintf(out, "\n%s:\n", option->help);
		return;
	}
	column = print_usage(out, option);
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

static void print_options(FILE *out, const struct seam_command *command)
{
	const struct seam_option *option = command->options;
	size_t n = command->n_options;

	if (n && option->kind != SEAM_OPTION_HEADING)
		fprintf(out, "\nOptions:\n");
	for (size_t i = 0; i < n; i++)
		print_option(out, &option[i]);
	fprintf(out, "\nGeneral:\n");
	for (size_t i = 0; (option = seam_command_common(command, i)); i++)
		print_option(out, option);
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

/* Lines of "command line\ttext". */
static void print_examples(FILE *out, const char *line)
{
	if (line && *line)
		fprintf(out, "\nExamples:\n");
	while (line && *line) {
		size_t n = strcspn(line, "\n");
		size_t tab = strcspn(line, "\t\n");

		fprintf(out, "  %.*s\n", (int)tab, line);
		if (tab < n)
			fprintf(out, "      %.*s\n", (int)(n - tab - 1),
				line + tab + 1);
		line += n + (line[n] == '\n');
	}
}

void seam_help_print(FILE *out, const struct seam_command *command)
{
	const char *seam = command->is_program ? "" : "seam ";

	fprintf(out, "%s%s - %s\n\nusage: %s%s %s\n", seam, command->name,
		command->summary, seam, command->name, command->synopsis);
	print_paragraphs(out, command->description);
	print_options(out, command);
	print_examples(out, command->examples);
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
	const char *instead = seam_perf_equivalent_command(name);
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
	struct help_options options = { 0 };
	const struct seam_command *command = NULL;
	int first;
	int rc = seam_command_parse(self, argc, argv, &options, &first);

	if (rc)
		return rc < 0 ? SEAM_EXIT_USAGE : SEAM_EXIT_DONE;
	if (argc - first > 1)
		return seam_command_misused(self, "one COMMAND at a time");
	if (first < argc) {
		command = seam_command_find(argv[first]);
		if (!command)
			command = seam_command_find_program(argv[first]);
		if (!command)
			return seam_command_unknown(argv[first]);
	}
	if (options.man)
		seam_pager_start_as(find_formatter(), SEAM_EXIT_DONE);
	if (!options.completion)
		seam_pager_start(SEAM_EXIT_DONE);
	if (options.completion)
		seam_completion_print(stdout, options.completion);
	else if (options.man)
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
