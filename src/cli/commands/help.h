/* SPDX-License-Identifier: MIT */
/*
 * help.h - the same tables as help, as man pages and as shell completion
 *
 * Everything here writes what a struct seam_command holds; no text about an
 * option stands anywhere else.  Errors of the stream are the caller's.
 */
#ifndef SEAM_HELP_H
#define SEAM_HELP_H

#include "cli/command.h"

/* What 'seam COMMAND --help' shows, in 80 columns. */
void seam_help_print(FILE *out, const struct seam_command *command);

/* What 'seam --help' shows: each command with its summary. */
void seam_help_overview(FILE *out);

/* A man page in mdoc for @command; for NULL the one of seam itself. */
void seam_man_print(FILE *out, const struct seam_command *command);

/* A completion script; @shell is "bash", "zsh" or "fish". */
void seam_completion_print(FILE *out, const char *shell);

/* The command of that name, or NULL. */
const struct seam_command *seam_command_find(const char *name);

/* "seam: there is no command ...", with the nearest.  SEAM_EXIT_USAGE. */
int seam_command_unknown(const char *name);

/* Print @text from @column on, broken at spaces before column 80. */
void seam_help_wrap(FILE *out, const char *text, int indent, int column);

#endif /* SEAM_HELP_H */
