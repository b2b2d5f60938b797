/* SPDX-License-Identifier: MIT */
/*
 * help.h - option tables as help, man pages and shell completion
 *
 * All text about options is in struct seam_command.  The caller checks streams
 * for errors.
 */
#pragma once

#include "cli/command.h"

/* The output of 'seam COMMAND --help', in 80 columns. */
void seam_help_print(FILE *out, const struct seam_command *command);

/* The output of 'seam --help': each command with its summary. */
void seam_help_overview(FILE *out);

/* A man page in mdoc for @command; for NULL the one of seam itself. */
void seam_man_print(FILE *out, const struct seam_command *command);

/* The command @name, or NULL. */
const struct seam_command *seam_command_find(const char *name);

/* The program that is started by @path, a second name of seam; or NULL. */
const struct seam_command *seam_command_find_program(const char *path);

/* Print that there is no command @name.  Returns SEAM_EXIT_USAGE. */
int seam_command_unknown(const char *name);
