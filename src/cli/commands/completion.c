/* SPDX-License-Identifier: MIT */
/*
 * completion.c - the option tables as completion scripts
 *
 * Each script completes commands, options, the choices of an option, and file
 * names.
 */
#include "cli/commands/help.h"

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

void seam_completion_print(FILE *out, const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		put_bash(out);
	else if (strcmp(shell, "zsh") == 0)
		put_zsh(out);
	else
		put_fish(out);
}
