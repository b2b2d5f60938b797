/* SPDX-License-Identifier: MIT */
/*
 * man.c - the option tables as manual pages in mdoc
 *
 * put_escaped() escapes text for roff: backslashes, hyphens, and a dot or quote
 * that would begin a request.
 */
#include "cli/commands/help.h"

/* mdoc requires a date: of the last change to text in this file. */
#define MAN_DATE "November 20, 2026"

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

/* ".It Fl F , Fl \-freq Ns = Ns Ar HZ" */
static void put_item(FILE *out, const struct seam_option *option)
{
	const char *value = option->value;

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
}

/* The help without its full stop, as a sentence. */
static void put_option(FILE *out, const struct seam_option *option)
{
	char text[512];

	put_item(out, option);
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

static void put_exit_status(FILE *out, bool takes_command)
{
	fputs(".Sh EXIT STATUS\n", out);
	if (takes_command) {
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
	      ".It 3\nDone, but data was lost or skipped.\n"
	      ".It 141\nThe reader of the output exited early "
	      "(SIGPIPE, as a shell reports it).\n"
	      ".El\n", out);
}

static void put_command(FILE *out, const struct seam_command *command)
{
	const struct seam_option *common;
	char name[64];

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
	put_exit_status(out, command->takes_command);
	put_examples(out, command->examples);
	fputs(".Sh SEE ALSO\n.Xr seam 1\n", out);
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
	put_exit_status(out, false);
}

void seam_man_print(FILE *out, const struct seam_command *command)
{
	if (command)
		put_command(out, command);
	else
		put_overview(out);
}
